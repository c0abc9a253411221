package unknown

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Unread fields are kept: in the frame's message if it has one and they are small, else as a
// message; those of the list are not.
func TestKeep(t *testing.T) {
	k := NewKeeper([]byte(`[{"path":"/**/signature","why":"it means nothing to a reader"}]`))
	long := strings.Repeat("x", maxAttr)
	for name, c := range map[string]struct {
		in       string
		messages int
		attr     string
		added    string
	}{
		"all is read":          {`{"text":"a text of more than 16 bytes"}`, 1, "", ""},
		"short":                {`{"text":"a","more":"fifteen bytes.."}`, 1, "", ""},
		"a string":             {`{"text":"a","more":"sixteen bytes..."}`, 1, `{"/more":"sixteen bytes..."}`, ""},
		"a container":          {`{"text":"a","more":{"n":1,"x":["sixteen bytes..."]}}`, 1, `{"/more":{"n":1,"x":["sixteen bytes..."]}}`, ""},
		"beside what is read":  {`{"text":"a","more":{"known":"b","x":"sixteen bytes..."}}`, 1, `{"/more/x":"sixteen bytes..."}`, ""},
		"in a list":            {`{"text":"a","list":[{"known":"b","x":"sixteen bytes..."},{"known":"b","x":"sixteen bytes. b"}]}`, 1, `{"/list/*/x":["sixteen bytes...","sixteen bytes. b"]}`, ""},
		"two":                  {`{"text":"a","z":"sixteen bytes...","y":"sixteen bytes..."}`, 1, `{"/y":"sixteen bytes...","/z":"sixteen bytes..."}`, ""},
		"another kind":         {`{"text":{"parts":["sixteen bytes..."]}}`, 1, `{"/":{"text":{"parts":["sixteen bytes..."]}}}`, ""},
		"named":                {`{"text":"a","more":{"signature":"sixteen bytes..."}}`, 1, "", ""},
		"no message":           {`{"more":"sixteen bytes...","less":1}`, 0, "", `{"more":"sixteen bytes...","less":1}`},
		"too long for a label": {`{"text":"a","more":"` + long + `"}`, 1, "", `{"/more":"` + long + `"}`},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(c.in)); err != nil {
			t.Fatal(err)
		}
		var out decoder.Output
		root := doc.Root()
		_, _ = root.Path("more", "known").Str(), root.Get("text").Str()
		for e := range root.Get("list").Elems() {
			_ = e.Get("known").Str()
		}
		for range c.messages {
			out.Add().Key = "m"
		}
		k.Keep(&doc, &out, 0, func(m *msg.Message) { m.Session = "s" })
		var attr, added string
		for i, m := range out.Messages {
			if i < c.messages {
				attr = m.Attr(Attr)
			} else if added = m.Content.String(); m.Kind != msg.Unknown || m.Session != "s" || m.Validate() != nil {
				t.Errorf("%s: %+v", name, m)
			}
		}
		if c.added != "" && c.messages == 0 {
			c.added = `{"/":` + c.added + `}`
		}
		if attr != c.attr || added != c.added {
			t.Errorf("%s: attribute %s, message %s", name, attr, added)
		}
	}
}

func TestParse(t *testing.T) {
	for in, ok := range map[string]bool{
		`[]`: true, `[{"path":"/a/*/b","why":"w"}]`: true, `[{"path":"a","why":"w"}]`: false, `[{"path":"/a"}]`: false, `[{"paths":"/a","why":"w"}]`: false, `{}`: false,
	} {
		if _, err := Parse([]byte(in)); (err == nil) != ok {
			t.Errorf("%s: %v", in, err)
		}
	}
	l, err := Parse([]byte(`[{"path":"/a/*/b","why":"w"},{"path":"/**/c","why":"w"},{"path":"/d","texts":["one","in * parts"],"why":"w"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a/x/b": true, "a/x/b/d": true, "a/b": false, "a/x/y/b": false, "c": true, "x/y/c/z": true, "d": false, "": false} {
		if got := l.Has(strings.Split(path, "/")); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	for text, want := range map[string]bool{"one": true, "in two parts": true, "in parts": false, "one more": false, "": false} {
		if got := l.HasText([]string{"d"}, text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
