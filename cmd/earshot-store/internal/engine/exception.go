package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Exception is an error of the engine, or one of ours in its terms. Code and
// Name are ClickHouse's, for example 60 and UNKNOWN_TABLE.
type Exception struct {
	Code    int
	Name    string
	Message string
}

// The codes that we raise ourselves.
var (
	BadArguments      = code{36, "BAD_ARGUMENTS"}
	NotImplemented    = code{48, "NOT_IMPLEMENTED"}
	SyntaxError       = code{62, "SYNTAX_ERROR"}
	CannotReadAll     = code{33, "CANNOT_READ_ALL_DATA"}
	UnknownSetting    = code{115, "UNKNOWN_SETTING"}
	ReadOnly          = code{164, "READONLY"}
	QueryTooLarge     = code{229, "QUERY_IS_TOO_LARGE"}
	CannotDecompress  = code{271, "CANNOT_DECOMPRESS"}
	Cancelled         = code{394, "QUERY_WAS_CANCELLED"}
	OutfileNotAllowed = code{358, "INTO_OUTFILE_NOT_ALLOWED"}
	AccessDenied      = code{497, "ACCESS_DENIED"}
	AuthFailed        = code{516, "AUTHENTICATION_FAILED"}
)

type code struct {
	number int
	name   string
}

// New makes an Exception of this code.
func (c code) New(format string, args ...any) *Exception {
	return &Exception{Code: c.number, Name: c.name, Message: fmt.Sprintf(format, args...)}
}

// Error is the text that ClickHouse itself would print, on one line of its own
// unless the message has more.
func (e *Exception) Error() string {
	return fmt.Sprintf("Code: %d. DB::Exception: %s (%s)", e.Code, e.Message, e.Name)
}

var (
	prefixRe  = regexp.MustCompile(`^Code: (\d+)\. [A-Za-z:]+: `)
	versionRe = regexp.MustCompile(`\s*\(version [0-9.]+\)\.?$`)
	nameRe    = regexp.MustCompile(`\s*\(([A-Z][A-Z0-9_]+)\)\.?$`)
)

// parseException takes the text apart. The library wraps some errors into
// themselves ("Code: 164. DB::Exception: Code: 164. DB::Exception: ..."), once or
// several times; the rest is the innermost message.
func parseException(s string) *Exception {
	e := &Exception{}
	for {
		m := prefixRe.FindStringSubmatch(s)
		if m == nil {
			break
		}
		e.Code, _ = strconv.Atoi(m[1])
		s = s[len(m[0]):]
	}
	if e.Code == 0 { // the binding's own complaints carry no code
		return BadArguments.New("%s", strings.TrimSpace(s))
	}
	for {
		s = strings.TrimSpace(s)
		if at := versionRe.FindStringIndex(s); at != nil {
			s = s[:at[0]]
			continue
		}
		m := nameRe.FindStringSubmatchIndex(s)
		if m == nil || e.Name != "" && s[m[2]:m[3]] != e.Name {
			break
		}
		e.Name = s[m[2]:m[3]]
		s = s[:m[0]]
	}
	e.Message = s
	return e
}
