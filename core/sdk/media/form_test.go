package media

import (
	"strings"
	"testing"
)

// TestForm: a body of either kind has its fields and files, a truncated one those before the cut, and another body none.
func TestForm(t *testing.T) {
	const part = "--cut\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nhello\r\n"
	file := part + "--cut\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nabc\r\n--cut--\r\n"
	for _, c := range []struct {
		name, body, fields string
		files              int
	}{
		{"URL-encoded", "message=two+words&n=1&n=2", `{"message":"two words","n":"1\n2"}`, 0},
		{"no known field", "other=1", "", 0},
		{"no form", "%zz", "", 0},
		{"multipart", file, `{"message":"hello"}`, 1},
		{"truncated", file[:len(part)-4], `{"message":"hel"}`, 0},
		{"no boundary", "--\r\n", "", 0},
		{"a long boundary", "--" + strings.Repeat("x", 300) + "\r\n", "", 0},
		{"invalid UTF-8", "message=%ff", `{"message":"�"}`, 0},
	} {
		fields, files := Form([]byte(c.body), "message")
		if string(fields) != c.fields || len(files) != c.files {
			t.Errorf("%s: %s and %d files, want %s and %d", c.name, fields, len(files), c.fields, c.files)
		}
		if len(files) == 1 && (files[0].Name != "a.txt" || files[0].MediaType != "text/plain" || files[0].SHA256 != abc) {
			t.Errorf("%s: %+v", c.name, files[0])
		}
	}
}
