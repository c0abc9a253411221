package httpd

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/standby"
)

// request has the parameters of a request, from its URL and headers.
type request struct {
	id       string
	reader   bool
	writer   bool   // of a program that stores rows: its statements are not reads
	query    string // from the URL; the body follows it
	database string
	format   string // when the text names none
	revision uint64 // client_protocol_version
	params   []engine.Param
	settings []engine.Setting

	blockCompress   bool   // compress=1
	blockDecompress bool   // decompress=1
	by              by     // see silence
	method          string // network_compression_method
	encoding        string // Content-Encoding of the answer
	wait            bool   // wait_end_of_query
}

// parse reads r. Errors are of type *engine.Exception.
func parse(r *http.Request) (*request, error) {
	// A bare semicolon separates nothing here: SELECT 1; is a query.
	values, err := url.ParseQuery(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"))
	if err != nil {
		return nil, engine.BadArguments.New("The URL cannot be read: %v", err)
	}
	q := &request{
		id:       values.Get("query_id"),
		query:    values.Get("query"),
		database: first(values.Get("database"), r.Header.Get("X-ClickHouse-Database")),
		format:   first(values.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated"),
	}
	if q.writer = r.Header.Get(standby.WriterHeader) != ""; q.writer {
		q.by = byWriter
	}
	if q.id == "" {
		q.id = newID()
	}
	if q.reader, err = isReader(r, values); err != nil {
		return q, err
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		return q, engine.NotImplemented.New("External tables (multipart/form-data) are not supported by the embedded store.")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := q.parameter(name, values.Get(name)); err != nil {
			return q, err
		}
	}
	if set := q.setting("readonly"); r.Method != http.MethodPost && set != "1" && set != "2" {
		q.settings = append(q.settings, engine.Setting{Name: "readonly", Value: "2"}) // the last one counts
	}
	if on(q.setting("enable_http_compression")) {
		q.encoding = acceptable(r.Header.Get("Accept-Encoding"))
	}
	q.method = strings.ToUpper(q.setting("network_compression_method"))
	return q, nil
}

func (q *request) parameter(name, value string) error {
	switch name {
	case "query", "query_id", "database", "default_format": // read already
	case "user", "password", "quota_key", "stacktrace", "buffer_size", "session_timeout", "session_check":
	case "session_id":
		return engine.NotImplemented.New("session_id is not supported by the embedded store: every request is a session of its own, so temporary tables and SET end with it.")
	case "role":
		return engine.NotImplemented.New("Roles are not supported by the embedded store.")
	case "compress":
		q.blockCompress = on(value)
	case "decompress":
		q.blockDecompress = on(value)
	case "wait_end_of_query":
		q.wait = on(value)
	case "client_protocol_version":
		revision, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return engine.BadArguments.New("client_protocol_version is not a number: %q", value)
		}
		q.revision = revision
	default:
		if param, ok := strings.CutPrefix(name, "param_"); ok {
			q.params = append(q.params, engine.Param{Name: param, Value: value})
		} else {
			q.settings = append(q.settings, engine.Setting{Name: name, Value: value})
		}
	}
	return nil
}

// paramValues are the values of the statement's placeholders by name.
func (q *request) paramValues() map[string]string {
	out := make(map[string]string, len(q.params))
	for _, p := range q.params {
		out[p.Name] = p.Value
	}
	return out
}

// setting is the value that will hold, "" when the request does not set it.
func (q *request) setting(name string) string {
	for _, s := range slices.Backward(q.settings) {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// isReader distinguishes the two users. Passwords are ignored: only the owner
// of the data folder can connect to the socket.
func isReader(r *http.Request, values url.Values) (bool, error) {
	basic, _, _ := r.BasicAuth()
	switch user := first(r.Header.Get("X-ClickHouse-User"), basic, values.Get("user")); user {
	case "", "default":
		return false, nil
	case "reader":
		return true, nil
	default:
		return false, engine.AuthFailed.New("%s: Authentication failed: the embedded store knows the users default and reader.", user)
	}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func on(value string) bool { return value == "1" || strings.EqualFold(value, "true") }

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
