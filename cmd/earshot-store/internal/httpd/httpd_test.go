package httpd

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/?query=SELECT+1;&query_id=q&database=d&default_format=CSV&compress=1&decompress=true&wait_end_of_query=1"+
		"&client_protocol_version=54460&param_b=2&param_a=1&max_threads=3&enable_http_compression=1&user=default&password=x&quota_key=k", nil)
	r.Header.Set("Accept-Encoding", "br, gzip")
	q, err := parse(r)
	if err != nil {
		t.Fatal(err)
	}
	if q.query != "SELECT 1;" || q.id != "q" || q.database != "d" || q.format != "CSV" || !q.blockCompress || !q.blockDecompress ||
		!q.wait || q.revision != 54460 || q.encoding != "br" || q.reader {
		t.Errorf("%+v", q)
	}
	if !slices.Equal(q.params, []engine.Param{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}) {
		t.Errorf("params %v", q.params)
	}
	if !slices.Equal(q.settings, []engine.Setting{{Name: "enable_http_compression", Value: "1"}, {Name: "max_threads", Value: "3"}}) {
		t.Errorf("settings %v", q.settings)
	}
}

func TestParseUsersAndMethods(t *testing.T) {
	cases := []struct {
		method, url  string
		header       http.Header
		reader, fail bool
		readonly     string
	}{
		{method: "POST", url: "/"},
		{method: "GET", url: "/?query=x", readonly: "2"},
		{method: "GET", url: "/?query=x&readonly=1", readonly: "1"},
		{method: "GET", url: "/?query=x&readonly=0", readonly: "2"},
		{method: "POST", url: "/?user=reader", reader: true},
		{method: "POST", url: "/", header: http.Header{"X-Clickhouse-User": {"reader"}}, reader: true},
		{method: "POST", url: "/?user=default", header: http.Header{"X-Clickhouse-User": {"reader"}}, reader: true},
		{method: "POST", url: "/", header: http.Header{"Authorization": {"Basic cmVhZGVyOng="}}, reader: true},
		{method: "POST", url: "/?user=root", fail: true},
		{method: "POST", url: "/?user=Reader", fail: true},
	}
	for _, c := range cases {
		r := httptest.NewRequest(c.method, c.url, nil)
		for k, v := range c.header {
			r.Header[k] = v
		}
		q, err := parse(r)
		if (err != nil) != c.fail {
			t.Errorf("%s %s: %v", c.method, c.url, err)
			continue
		}
		if err == nil && (q.reader != c.reader || q.setting("readonly") != c.readonly) {
			t.Errorf("%s %s: reader %v readonly %q", c.method, c.url, q.reader, q.setting("readonly"))
		}
	}
}

func TestAcceptable(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "GZip": "gzip", "snappy, br;q=0.5, gzip": "br", "gzip;q=0, deflate": "deflate", "*": "",
	} {
		if got := acceptable(header); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}

func TestStatusOf(t *testing.T) {
	for code, want := range map[int]int{60: 404, 81: 404, 62: 400, 27: 400, 241: 500, 395: 500, 497: 403, 516: 403, 194: 401, 48: 501, 159: 408, 229: 413, 164: 500} {
		if got := statusOf(code); got != want {
			t.Errorf("%d: %d, want %d", code, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("x", headLimit)
	cases := []struct{ query, body, text, rows string }{
		{"SELECT 1", "", "SELECT 1\n", ""},
		{"", "SELECT 1", "SELECT 1", ""},
		{"SELECT", "1", "SELECT\n1", ""},
		{"", "SELECT '" + long + "'", "SELECT '" + long + "'", ""},
		{"INSERT INTO t FORMAT CSV", "1\n", "INSERT INTO t FORMAT CSV\n", "1\n"},
		{"INSERT INTO t FORMAT CSV \n ", "\n1\n", "INSERT INTO t FORMAT CSV \n \n", "\n1\n"},
		{"INSERT INTO t FORMAT CSV 1", "2\n", "INSERT INTO t FORMAT CSV 1\n", "1\n2\n"},
		{"", "INSERT INTO t FORMAT CSV\n" + long, "", long},
		{"INSERT INTO t", "VALUES (1)", "INSERT INTO t\nVALUES (1)", " (1)"},
	}
	for _, c := range cases {
		_, text, rows, err := split(c.query, strings.NewReader(c.body))
		if err != nil {
			t.Errorf("%.50q %.50q: %v", c.query, c.body, err)
			continue
		}
		var got []byte
		if rows != nil {
			got, _ = io.ReadAll(rows)
		}
		if c.text != "" && text != c.text || string(got) != c.rows {
			t.Errorf("%.50q %.50q: text %.80q rows %.80q", c.query, c.body, text, got)
		}
	}
	if _, _, _, err := split("", io.LimitReader(repeat('x'), queryLimit+headLimit+10)); err == nil {
		t.Error("a text above the limit was read")
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func TestEncodersAndDecodersMatch(t *testing.T) {
	want := bytes.Repeat([]byte("some text that repeats "), 20_000)
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		var wire bytes.Buffer
		enc, err := newEncoder(name, &wire)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(want, 100_000) {
			enc.Write(part)
			enc.Flush()
		}
		if err := enc.Close(); err != nil {
			t.Fatal(err)
		}
		whole := wire.Bytes()
		r, err := decode(bytes.NewReader(whole), name, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		r.Close()
		for _, cut := range []int{1, len(whole) / 2, len(whole) - 1} {
			r, err := decode(bytes.NewReader(whole[:cut]), name, false)
			if err == nil {
				_, err = io.ReadAll(r)
				r.Close()
			}
			if err == nil {
				t.Errorf("%s: a body cut at %d of %d was whole", name, cut, len(whole))
			}
		}
		if r, err := decode(strings.NewReader(""), name, false); err != nil {
			t.Errorf("%s: an empty body: %v", name, err)
		} else if got, err := io.ReadAll(r); err != nil || len(got) > 0 {
			t.Errorf("%s: an empty body gave %q, %v", name, got, err)
		}
	}
	var wire bytes.Buffer
	if _, err := newBlockWriter(&wire, "ZSTD").Write(want); err != nil {
		t.Fatal(err)
	}
	r, err := decode(bytes.NewReader(wire.Bytes()), "", true)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("blocks: %d bytes, %v", len(got), err)
	}
	r, _ = decode(bytes.NewReader(wire.Bytes()[:wire.Len()-1]), "", true)
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a cut block was whole")
	}
}

func TestSpool(t *testing.T) {
	for _, size := range []int{0, 10, spoolMemory, spoolMemory + 1, 3 * spoolMemory} {
		s := &spool{dir: t.TempDir()}
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for part := range slices.Chunk(want, 1<<20) {
			if _, err := s.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if (s.file != nil) != (size > spoolMemory) {
			t.Errorf("%d bytes: in a file: %v", size, s.file != nil)
		}
		if left, _ := os.ReadDir(s.dir); len(left) != 0 {
			t.Errorf("%d bytes: visible as %v", size, left)
		}
		var got bytes.Buffer
		if err := s.copyTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes: %d, %v", size, got.Len(), err)
		}
		s.close()
	}
}

func TestContentType(t *testing.T) {
	for format, want := range map[string]string{
		"JSON": "application/json", "jsoncompact": "application/json", "JSONEachRow": "application/x-ndjson", "CSVWithNames": "text/csv; charset=UTF-8; header=present",
		"TabSeparated": "text/tab-separated-values", "Native": "application/octet-stream", "Pretty": "text/plain",
	} {
		if got := contentType(format); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", format, got)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add("query=SELECT+1&a=b")
	f.Add("client_protocol_version=99999999999999&param_=x&%zz=;")
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{Method: "GET", URL: &url.URL{Path: "/", RawQuery: raw}, Header: http.Header{}}
		if q, err := parse(r); err == nil && q.setting("readonly") == "" {
			t.Errorf("%q: a GET that is not read only", raw)
		}
	})
}

// A body may arrive in any pieces, its last byte alone among them. brotli 1.2.8
// calls such a body excessive, which is why go.mod stays at 1.2.7.
func TestDecodersTakeAnyCut(t *testing.T) {
	want := make([]byte, 150_000)
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		var whole []byte
		if name == "br" { // at the level of the drivers, not at ours
			var wire bytes.Buffer
			w := brotli.NewWriterLevel(&wire, 1)
			w.Write(want)
			w.Close()
			whole = wire.Bytes()
		} else {
			var wire bytes.Buffer
			w, err := newEncoder(name, &wire)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(want)
			w.Close()
			whole = wire.Bytes()
		}
		for cut := range whole {
			if cut > 40 && cut < len(whole)-40 {
				continue
			}
			body := io.MultiReader(bytes.NewReader(whole[:cut]), bytes.NewReader(whole[cut:]))
			r, err := decode(body, name, false)
			if err != nil {
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s of %d bytes cut at %d: %d, %v", name, len(whole), cut, len(got), err)
			}
			r.Close()
		}
		// Bytes behind its end are an error.
		r, err := decode(bytes.NewReader(append(bytes.Clone(whole), "junk"...)), name, false)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if err == nil {
			t.Errorf("%s: junk behind the end went unnoticed", name)
		}
	}
}
