package source

import (
	"net/url"
	"strings"
)

// Address is a URL as the origin of a stream: without user, fragment and those
// parameters of the query that are likely to be secrets. An origin is stored and
// shown, and no redaction rule sees it.
func Address(u *url.URL) string {
	clean := *u
	clean.User, clean.Fragment, clean.RawFragment = nil, "", ""
	if clean.RawQuery != "" {
		kept := make([]string, 0, 4)
		for part := range strings.SplitSeq(clean.RawQuery, "&") {
			name, _, _ := strings.Cut(part, "=")
			if decoded, err := url.QueryUnescape(name); err == nil && !secret(decoded) {
				kept = append(kept, part)
			}
		}
		clean.RawQuery = strings.Join(kept, "&")
	}
	return clean.String()
}

// Origin is Address of a URL that was validated before.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return Address(u)
}

func secret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"key", "token", "secret", "password", "passwd", "auth", "signature", "sig", "credential", "jwt"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
