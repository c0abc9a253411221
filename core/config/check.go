package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// shown quotes a value for a message, unless variables made it: what they stand
// for may be secret.
func (l *loader) shown(path, value string) string {
	if raw, ok := l.variables[path]; ok {
		return "the value of " + quote(raw)
	}
	return quote(value)
}

// required reports whether value is there. why names what cannot do without it,
// where it can be left out otherwise.
func (l *loader) required(path, value, why string) bool {
	if value != "" {
		return true
	}
	_, given := l.at[path]
	switch {
	case given:
		l.report(path, "must not be empty", "")
	case why == "":
		l.report(path, "required", "")
	default:
		l.report(path, "required by "+why, "")
	}
	return false
}

func (l *loader) oneOf(path, value string, allowed ...string) {
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
	l.report(path, "expected "+enumerate(quoted, "or")+", got "+l.shown(path, value), DidYouMean(value, allowed))
}

func (l *loader) positive(path string, d Duration) bool {
	if d <= 0 {
		l.report(path, "must be longer than 0s", "")
	}
	return d > 0
}

func (l *loader) notNegative(path string, d Duration) {
	if d < 0 {
		l.report(path, "must not be negative", "")
	}
}

func (l *loader) positiveSize(path string, s Size) bool {
	if s <= 0 {
		l.report(path, "must be greater than 0", "")
	}
	return s > 0
}

// address checks an address to listen on.
func (l *loader) address(path, address string) bool {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || strconv.FormatUint(n, 10) != port || strings.ContainsAny(host, " /@\t\n") {
		l.report(path, `expected an address like "127.0.0.1:7801", got `+l.shown(path, address), "")
		return false
	}
	return true
}

func (l *loader) requiredURL(path, value, why string, schemes ...string) {
	if !l.required(path, value, why) {
		return
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		l.report(path, fmt.Sprintf(`expected a URL like "%s://host:port/path", got %s`, schemes[0], l.shown(path, hideUser(value))), "")
	case !slices.Contains(schemes, u.Scheme):
		l.report(path, fmt.Sprintf("expected scheme %s, got %s", enumerate(schemes, "or"), l.shown(path, u.Scheme)), hintScheme(u.Scheme))
	case u.User != nil:
		l.report(path, "must not hold a user or password, because URLs are printed", "")
	}
}

// hideUser cuts from a text that is no URL what may be a password in it.
func hideUser(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "..." + s[i:]
	}
	return s
}

func hintScheme(scheme string) string {
	switch scheme {
	case "ws", "wss":
		return "a WebSocket is a source of type websocket"
	}
	return ""
}

// headers checks names and values; a message never holds a value.
func (l *loader) headers(path string, headers map[string]Secret) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at, value := join(path, name), headers[name]
		if !isToken(name) {
			l.report(at, "not the name of a header", "")
		}
		if strings.ContainsAny(value.Reveal(), "\r\n\x00") {
			l.report(at, "the value of a header is one line", "")
		}
	}
}

// isToken reports whether s is a token of HTTP (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

var (
	errDSN       = errors.New(`expected a dsn like "clickhouse://user:password@host:9000/earshot", its password percent-encoded`)
	errDSNScheme = errors.New("expected scheme clickhouse, tcp, native, http or https")
)

// parseDSN parses a ClickHouse DSN as far as it is ours. The driver takes several
// hosts, which net/url refuses in http URLs, so all but the first are checked for
// themselves and cut out. Its errors never hold the DSN.
func parseDSN(dsn Secret) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(dsn.Reveal(), "://")
	if !ok {
		return nil, errDSN
	}
	if !slices.Contains([]string{"clickhouse", "tcp", "native", "http", "https"}, scheme) {
		return nil, errDSNScheme
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i+1], authority[i+1:]
	}
	var first *url.URL
	for host := range strings.SplitSeq(authority, ",") {
		u, err := url.Parse(scheme + "://" + user + host + tail)
		if err != nil || u.Hostname() == "" {
			return nil, errDSN
		}
		if first == nil {
			first = u
		}
	}
	return first, nil
}

// databaseOf returns the database that a DSN names, or "".
func databaseOf(dsn *url.URL) string {
	if d := dsn.Query().Get("database"); d != "" {
		return d
	}
	return strings.Trim(dsn.Path, "/")
}

func sourceTypes() []string { return keys(variantsOf(reflect.TypeFor[Source]())) }

// listeners reports addresses that two listeners would share.
func (l *loader) listeners(c *Config) {
	type listener struct{ path, host, port string }
	var seen []listener
	add := func(path, address string) {
		host, port, err := net.SplitHostPort(address)
		if err != nil || port == "0" || l.bad[path] {
			return
		}
		for _, s := range seen {
			if s.port == port && (s.host == host || isWildcard(s.host) || isWildcard(host)) {
				l.report(path, l.shown(path, address)+" is already the address of "+s.path, "")
				return
			}
		}
		seen = append(seen, listener{path, host, port})
	}
	for i, s := range c.Sources {
		path := "sources[" + strconv.Itoa(i) + "].listen"
		switch {
		case s.Tap != nil:
			add(path, s.Tap.Listen)
		case s.HTTP != nil:
			add(path, s.HTTP.Listen)
		}
	}
	if c.Exporters.ClickHouse == nil {
		add("store.listen", c.Store.Listen)
	}
	add("telemetry.listen", c.Telemetry.Listen)
}

func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}
