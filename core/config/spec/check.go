package spec

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/earshot-dev/earshot/core/loopback"
)

// File is the file that a section was read from.
type File interface {
	// Report adds a problem at a path, unless the path has one: a value that could not be
	// read is not also missing.
	Report(path, message, hint string)
	// IsSet reports whether the file has a value at the path.
	IsSet(path string) bool
	// Quote quotes a value for a message, unless the file takes it from a variable, whose
	// value may be secret.
	Quote(path, value string) string
}

// Check reports the problems of a section of a file. Its methods take keys of the
// section, or paths below it such as "paths[2]".
type Check struct {
	file  File
	path  string
	owner string // requires the keys of the section: "type file"
}

// NewCheck returns the check of the section at the path; owner requires its
// keys ("type file") and may be empty.
func NewCheck(file File, path, owner string) *Check { return &Check{file, path, owner} }

// In is the check of a section below this one.
func (c *Check) In(key string) *Check { return &Check{c.file, c.at(key), ""} }

func (c *Check) at(key string) string {
	switch {
	case c.path == "":
		return key
	case key == "":
		return c.path
	}
	return c.path + "." + key
}

// Index is the path of an item of a list.
func Index(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// Report adds a problem.
func (c *Check) Report(key, message, hint string) { c.file.Report(c.at(key), message, hint) }

// IsSet reports whether the file has the key.
func (c *Check) IsSet(key string) bool { return c.file.IsSet(c.at(key)) }

// Quote quotes a value for a message, or names the variable that it is from.
func (c *Check) Quote(key, value string) string { return c.file.Quote(c.at(key), value) }

// Required reports whether value is there.
func (c *Check) Required(key, value string) bool { return c.RequiredBy(key, value, c.owner) }

// RequiredBy is Required of a key that can be left out otherwise; by requires it.
func (c *Check) RequiredBy(key, value, by string) bool {
	switch {
	case value != "":
		return true
	case c.IsSet(key):
		c.Report(key, "must not be empty", "")
	case by == "":
		c.Report(key, "required", "")
	default:
		c.Report(key, "required by "+by, "")
	}
	return false
}

// OneOf checks a value of a fixed set.
func (c *Check) OneOf(key, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = a
		if a == "" {
			quoted[i] = `""`
		}
	}
	c.Report(key, "expected "+Enumerate(quoted, "or")+", got "+c.Quote(key, value), DidYouMean(value, allowed))
}

// Positive checks a duration that must be longer than nothing.
func (c *Check) Positive(key string, d Duration) bool {
	if d <= 0 {
		c.Report(key, "must be longer than 0s", "")
	}
	return d > 0
}

// NotNegative checks a duration that may be nothing.
func (c *Check) NotNegative(key string, d Duration) {
	if d < 0 {
		c.Report(key, "must not be negative", "")
	}
}

// PositiveSize checks a size that must be more than nothing.
func (c *Check) PositiveSize(key string, s Size) bool {
	if s <= 0 {
		c.Report(key, "must be greater than 0", "")
	}
	return s > 0
}

var formatName = regexp.MustCompile(`^[a-z0-9-]+$`)

// IsFormat reports whether a format may have the name.
func IsFormat(name string) bool { return formatName.MatchString(name) }

// Format checks the name of a format that by requires.
func (c *Check) Format(key, name, by string) {
	if c.RequiredBy(key, name, by) && !IsFormat(name) {
		c.Report(key, "the name of a format is made of a-z, 0-9 and -, got "+c.Quote(key, name), "")
	}
}

// Address checks an address to listen on.
func (c *Check) Address(key, address string) bool {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || strconv.FormatUint(n, 10) != port || strings.ContainsAny(host, " /@\t\n") {
		c.Report(key, `expected an address like "127.0.0.1:7801", got `+c.Quote(key, address), "")
		return false
	}
	return true
}

// Exposed reports a listener beyond loopback that serves every client that reaches it: proves is
// whether clients prove their identity, allowed whether the section permits the listener without.
// needs names the missing keys.
func (c *Check) Exposed(key, address string, proves, allowed bool, needs string) {
	if _, _, err := net.SplitHostPort(address); err == nil && !proves && !allowed && !loopback.Is(address) {
		c.Report(key, c.Quote(key, address)+" is reached from other machines, which needs "+needs, "or say allow_insecure: true where the network is closed")
	}
}

// Inbound checks the protection of a listener whose requests carry a bearer token.
func (c *Check) Inbound(key, address string, token Secret, tls *ServerTLS, allowed bool) {
	proves := tls != nil && (token.Reveal() != "" || tls.ClientCAFile != "")
	c.Exposed(key, address, proves, allowed, "tls, and token or tls.client_ca_file")
}

// Token checks a bearer token.
func (c *Check) Token(key string, token Secret) {
	if strings.ContainsAny(token.Reveal(), " \t\r\n") {
		c.Report(key, "a token has no white space", "")
	}
}

// URL checks a URL that is required and has one of the schemes.
func (c *Check) URL(key, value string, schemes ...string) {
	if !c.Required(key, value) {
		return
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		c.Report(key, fmt.Sprintf(`expected a URL like "%s://host:port/path", got %s`, schemes[0], c.Quote(key, hideUser(value))), "")
	case !slices.Contains(schemes, u.Scheme):
		hint := ""
		if u.Scheme == "ws" || u.Scheme == "wss" {
			hint = "a WebSocket is a source of type websocket"
		}
		c.Report(key, fmt.Sprintf("expected scheme %s, got %s", Enumerate(schemes, "or"), c.Quote(key, u.Scheme)), hint)
	case u.User != nil:
		c.Report(key, "must not hold a user or password, because URLs are printed", "")
	}
}

// hideUser cuts the part of a text that may hold a password, when the text is no URL.
func hideUser(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "..." + s[i:]
	}
	return s
}

// Globs checks patterns of paths.
func (c *Check) Globs(key string, globs []string) {
	for i, g := range globs {
		if at := Index(key, i); c.RequiredBy(at, g, "") && !doublestar.ValidatePathPattern(g) {
			c.Report(at, "not a glob: "+c.Quote(at, g), "")
		}
	}
}

// Headers checks names and values; a message never holds a value.
func (c *Check) Headers(key string, headers Headers) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := Join(key, name)
		if !IsToken(name) {
			c.Report(at, "not the name of a header", "")
		}
		if strings.ContainsAny(headers[name].Reveal(), "\r\n\x00") {
			c.Report(at, "the value of a header is one line", "")
		}
	}
}

// Headers are the headers of a request. Their values are never printed.
type Headers map[string]Secret

// Reveal returns the headers as they are sent.
func (h Headers) Reveal() map[string]string {
	out := make(map[string]string, len(h))
	for name, value := range h {
		out[name] = value.Reveal()
	}
	return out
}

// IsToken reports whether s is a token of HTTP (RFC 9110, section 5.6.2).
func IsToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// Enumerate joins words as a sentence does: "a, b and c".
func Enumerate(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// Join appends a key to a path. A key that is not a plain word is quoted, so that a path
// is one line and its dots are unambiguous.
func Join(path, key string) string {
	if !IsWord(key) {
		key = Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// IsWord reports whether a text needs no quotes in a path or in YAML.
func IsWord(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Quote quotes a text from a file, cut to the length of a line.
func Quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q...", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}

// Validate checks a section that was not read from a file, and returns its first problem.
func Validate(s Section) error {
	var f first
	s.Validate(NewCheck(&f, "", ""))
	return f.err
}

// first is a File that keeps the first problem.
type first struct{ err error }

func (f *first) Report(path, message, hint string) {
	if f.err != nil {
		return
	}
	if hint != "" {
		message += " (" + hint + ")"
	}
	f.err = errors.New(path + ": " + message)
}

func (f *first) IsSet(string) bool            { return false }
func (f *first) Quote(_, value string) string { return Quote(value) }

// Request checks the keys of an HTTP request: url, method, headers and body.
func (c *Check) Request(url, method string, headers Headers, body string) {
	c.URL("url", url, "http", "https")
	c.OneOf("method", method, "GET", "POST", "PUT")
	c.Headers("headers", headers)
	if body != "" && method == "GET" {
		c.Report("body", "a GET request has no body", "set method: POST")
	}
}
