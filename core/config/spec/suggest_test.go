package spec

import "testing"

func TestSuggest(t *testing.T) {
	known := []string{"", "name", "type", "format", "start_at", "max_line", "max_body", "poll_interval", "url", "tls", "log"}
	for word, want := range map[string]string{
		"formt": "format", "fromat": "format", "formatt": "format", "Format": "format", "frmt": "format",
		"tpye": "type", "typ": "type", "nam": "name", "ulr": "url", "URL": "url",
		"startAt": "start_at", "start-at": "start_at", "start": "start_at", "poll": "poll_interval",
		"max_lines": "max_line", "url_of_stream": "url",
		"": "", "x": "", "kafka": "", "abc": "", "foo": "",
	} {
		if got := Suggest(word, known); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestSlips(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1},
		{"abc", "ab", 1}, {"ab", "abc", 1}, {"abcd", "badc", 2}, {"ca", "abc", 3}, {"kitten", "sitting", 3},
	} {
		if got := slips(c.a, c.b); got != c.want {
			t.Errorf("slips(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
