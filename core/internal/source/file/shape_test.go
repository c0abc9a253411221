package file

import "testing"

// TestShape: a name decides before the beginning, and a format without documents has none.
func TestShape(t *testing.T) {
	documents := []string{"session-*.json"}
	for _, c := range []struct {
		name, head string
		documents  []string
		want       Shape
	}{
		{"/s/session-1.json", "", documents, Document},
		{`C:\s\session-1.json`, "", documents, Document},
		{"/s/session-1.json", "{}\n{}\n", documents, Document},
		{"/s/other.json", "{}\n{}\n", documents, Lines},
		{"/s/x.jsonl", "{\n  \"n\": 1\n}\n", documents, Document},
		{"/s/x.jsonl", "\xef\xbb\xbf[\r\n1]", documents, Document},
		{"/s/x.jsonl", "{\n", nil, Lines},
		{"/s/x.jsonl", "{", documents, Lines},
		{"/s/x.jsonl", "{ }\n{\n", documents, Lines},
		{"/s/x.jsonl", "", documents, Lines},
		{"/s/x.jsonl.gz", "{\n", documents, Archive},
		{"/s/x.jsonl.zst", "", nil, Archive},
	} {
		if got := ShapeOf(c.name, []byte(c.head), c.documents); got != c.want {
			t.Errorf("%s %q: shape %d, want %d", c.name, c.head, got, c.want)
		}
	}
}
