package mcp

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func TestContent(t *testing.T) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	for in, want := range map[string]struct {
		text  string
		files []msg.Attachment
	}{
		`"in words"`: {"in words", nil},
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`: {"a\nb", nil},
		`[{"type":"image","data":"YWJj","mimeType":"image/png"}]`: {"", []msg.Attachment{{MediaType: "image/png", Size: 3, SHA256: abc}}},
		`[{"type":"resource_link","uri":"file:///orchard/plan.md","name":" plan ","mimeType":"text/markdown"}]`: {"",
			[]msg.Attachment{{Name: "plan", MediaType: "text/markdown", URL: "file:///orchard/plan.md"}}},
		`[{"type":"resource","resource":{"uri":"orchard://rows","text":"rows"}}]`: {"rows", []msg.Attachment{{URL: "orchard://rows"}}},
		`[{"type":"resource","resource":{"uri":"orchard://map","blob":"YWJj","mimeType":"image/png"}}]`: {"",
			[]msg.Attachment{{URL: "orchard://map", MediaType: "image/png", Size: 3, SHA256: abc}}},
		`[{"type":"new"}]`: {"", nil},
		`null`:             {"", nil},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		c := Content(doc.Root())
		if d := cmp.Diff(want.files, c.Files); c.Joined().String() != want.text || d != "" {
			t.Errorf("%s: %q %s", in, c.Joined().String(), d)
		}
	}
}
