package jsonrpc

import (
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestNotes: what a recorder wrote beside the messages is a note, which is another one at another time or from another place.
func TestNotes(t *testing.T) {
	at := conversation.Time{Nanos: 7}
	keys := make(map[string]string)
	for _, c := range []struct {
		in   string
		at   conversation.Time
		want string
	}{
		{`{"method":"initialize","id":0}`, at, ""},
		{`{"dir":"in","frame":{"method":"initialize","id":0}}`, at, ""},
		{`{"dir":"in","frame":"starting"}`, at, "text"},
		{`{"dir":"stderr","frame":"starting"}`, at, "stderr"},
		{`{"dir":"stderr","frame":"starting"}`, conversation.Time{Nanos: 8}, "stderr"},
		{`{"dir":"stderr","frame":"started"}`, at, "stderr"},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(c.in)); err != nil {
			t.Fatal(err)
		}
		key, typ, ok := Of(&frame.Frame{}, doc.Root()).Note(c.at)
		if typ != c.want || ok != (c.want != "") || (key != "") != ok {
			t.Errorf("%s: %q of type %q, %t", c.in, key, typ, ok)
		}
		if before := keys[key]; ok && before != "" {
			t.Errorf("%s has the key of %s", c.in, before)
		}
		keys[key] = c.in
	}
}
