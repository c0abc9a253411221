package conversation

import (
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestLongAttributesStayUnread: a value that is too long for an attribute does not count as
// read, so that it is kept whole beside the message.
func TestLongAttributesStayUnread(t *testing.T) {
	const least = 4
	long := strings.Repeat("é", MaxAttr)
	for _, c := range []struct {
		in     string
		of     func(jsonv.Value) string
		want   string
		unread bool
	}{
		{`"short"`, Excerpt, "short", false},
		{`"` + long + `"`, Excerpt, long[:MaxAttr], true},
		{`{"a":"text"}`, ShortJSON, `{"a":"text"}`, false},
		{`{"a":"` + long + `"}`, ShortJSON, "", true},
		{`null`, ShortJSON, "", false},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(`{"v":` + c.in + `}`)); err != nil {
			t.Fatal(err)
		}
		if got := c.of(doc.Root().Get("v")); got != c.want {
			t.Errorf("%.20s: %.40q", c.in, got)
		}
		if unread := len(doc.Unread(least, func([]string) bool { return false })) > 0; unread != c.unread {
			t.Errorf("%.20s: unread %t", c.in, unread)
		}
	}
	if got := Cut("éé", 3); got != "é" {
		t.Errorf("half a character: %q", got)
	}
	if NonZero(0) != "" || NonZero(7) != "7" {
		t.Error("numbers")
	}
}

// TestFirstPhraseIsTheClass: of the phrases that an error has, the first in the list counts.
func TestFirstPhraseIsTheClass(t *testing.T) {
	for text, want := range map[string]string{"the tide timed out": "timeout", "denied: it timed out": "denied", "no": "tool_error"} {
		if got := ErrorClass(text, "denied", "denied", "timed out", "timeout"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestAttributesAreNamed: an attribute has the name of its member unless it has one of its own, and none without a value. Of several
// members the first that is there counts.
func TestAttributesAreNamed(t *testing.T) {
	var doc jsonv.Doc
	if err := doc.Parse([]byte(`{"exitCode":3,"lines":7,"text":"no number"}`)); err != nil {
		t.Fatal(err)
	}
	var m msg.Message
	AttrsAs(&m, doc.Root(), jsonv.Value.Digits, "exit_code=exitCode", "lines", "text", "none", "code=code|exitCode|lines", "no=a|b")
	if want := []msg.Attr{{Key: "exit_code", Value: "3"}, {Key: "lines", Value: "7"}, {Key: "code", Value: "3"}}; !slices.Equal(m.Attrs, want) {
		t.Errorf("%v, want %v", m.Attrs, want)
	}
}

// TestAttrs: an attribute has the name of its member, or its own, also of a member of a member.
func TestAttrs(t *testing.T) {
	var doc jsonv.Doc
	if err := doc.Parse([]byte(`{"agent":"pip","exitCode":"3","model":{"id":"m","provider":"p"},"path":"x"}`)); err != nil {
		t.Fatal(err)
	}
	var m msg.Message
	Attrs(&m, doc.Root(), "agent", "exit_code=exitCode", "model.id", "by=model.provider", "path.cwd", "none")
	if want := []msg.Attr{{Key: "agent", Value: "pip"}, {Key: "exit_code", Value: "3"}, {Key: "id", Value: "m"}, {Key: "by", Value: "p"}}; !slices.Equal(m.Attrs, want) {
		t.Errorf("%v, want %v", m.Attrs, want)
	}
}
