package httpd

import "net/http"

// statusOf maps an exception code to the HTTP status that ClickHouse uses for it.
func statusOf(code int) int {
	switch code {
	case 194: // REQUIRED_PASSWORD
		return http.StatusUnauthorized
	case 192, 193, 497, 512, 516: // UNKNOWN_USER, WRONG_PASSWORD, ACCESS_DENIED, SET_NON_GRANTED_ROLE, AUTHENTICATION_FAILED
		return http.StatusForbidden
	case 6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675, 676:
		// texts, numbers, dates, types and syntax that do not parse or fit
		return http.StatusBadRequest
	case 46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511: // UNKNOWN_*
		return http.StatusNotFound
	case 229: // QUERY_IS_TOO_LARGE
		return http.StatusRequestEntityTooLarge
	case 48: // NOT_IMPLEMENTED
		return http.StatusNotImplemented
	case 76, 209, 439: // CANNOT_OPEN_FILE, SOCKET_TIMEOUT, CANNOT_SCHEDULE_TASK
		return http.StatusServiceUnavailable
	case 381: // HTTP_LENGTH_REQUIRED
		return http.StatusLengthRequired
	case 159: // TIMEOUT_EXCEEDED
		return http.StatusRequestTimeout
	}
	return http.StatusInternalServerError
}
