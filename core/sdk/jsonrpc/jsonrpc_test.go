package jsonrpc

import (
	"reflect"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
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

// TestFailed: an error is the content of its message, in the place of what that had; no error changes nothing.
func TestFailed(t *testing.T) {
	for in, want := range map[string]msg.Message{
		`{"id":1,"result":{}}`:  {Content: msg.Plain("before")},
		`{"id":1,"error":null}`: {Content: msg.Plain("before")},
		`{"id":1,"error":{"code":-32602,"message":"no hive 7","data":{"hives":6}}}`: {
			IsError: true, Content: msg.Plain("no hive 7"), Tool: msg.Tool{ErrorType: "-32602"}, Attrs: []msg.Attr{{Key: "data", Value: `{"hives":6}`}},
		},
		`{"id":1,"error":"busy"}`: {IsError: true},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		got := msg.Message{Content: msg.Plain("before")}
		if failed := Failed(&got, doc.Root().Get("error")); failed != want.IsError {
			t.Errorf("%s: %t", in, failed)
		}
		if got.Content.String() != want.Content.String() {
			t.Errorf("%s: %q", in, got.Content.String())
		}
		if got.Content = want.Content; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", in, got)
		}
	}
}
