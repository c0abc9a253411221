package record

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestMemory: a name is one string however often it occurs, copies stay as they were, and a hash is that of the parts
// however the text is escaped.
func TestMemory(t *testing.T) {
	long := strings.Repeat("x", 2*ident.Max)
	var doc jsonv.Doc
	if err := doc.Parse(fmt.Appendf(nil, `{"a":"tide","b":"t\u0069de","n":1.50,"yes":true,"list":[1],"long":%q}`, long)); err != nil {
		t.Fatal(err)
	}
	var m Memory
	v := doc.Root()
	a, b := m.Name(v.Get("a")), m.Name(v.Get("b"))
	if a != "tide" || unsafe.StringData(a) != unsafe.StringData(b) {
		t.Errorf("%q and %q are two strings", a, b)
	}
	if got := m.Name(v.Get("long")); got != ident.Of(v.Get("long")) || m.Name(v.Get("n")) != "" || m.Name(v.Get("none")) != "" {
		t.Errorf("names are not those of package ident: %q", got)
	}
	for i := range 2 * maxNames {
		if err := doc.Parse(fmt.Appendf(nil, `["%d"]`, i)); err != nil {
			t.Fatal(err)
		}
		for v := range doc.Root().Elems() {
			if got := m.Name(v); got != fmt.Sprint(i) {
				t.Fatalf("name %d is %q", i, got)
			}
		}
	}
	if len(m.names) > maxNames {
		t.Errorf("%d names", len(m.names))
	}
	var copies []string
	for i := range 1000 {
		copies = append(copies, m.Join("copy:", fmt.Sprint(i), strings.Repeat("/", i%99*9)))
	}
	for i, s := range copies {
		if want := "copy:" + fmt.Sprint(i) + strings.Repeat("/", i%99*9); s != want {
			t.Errorf("copy %d is %q", i, s)
		}
	}
	for _, text := range []msg.Text{msg.Plain("caf\u00e9"), msg.Quoted([]byte(`caf\u00e9`)), msg.Raw([]byte("café"))} {
		if got, want := string(m.Hash(text, "a", "")), msg.HashKey("a", "", "café"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestScalars: a string, a number and a boolean are text; an id is a string alone.
func TestScalars(t *testing.T) {
	var doc jsonv.Doc
	var m Memory
	for in, want := range map[string]string{`"t\u0069de"`: "tide", `1.50`: "1.50", `true`: "true", `false`: "false", `null`: "", `[1]`: "", `{"a":1}`: ""} {
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if got := m.Scalar(doc.Root()); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
		if !doc.Root().Is(jsonv.String) {
			want = ""
		}
		if got := m.StrOf(doc.Root()); got != want {
			t.Errorf("%s is the id %q, want %q", in, got, want)
		}
	}
}

// TestUnusualMemoryIsFreed: the memory of a large text does not wait for the next record.
func TestUnusualMemoryIsFreed(t *testing.T) {
	var m Memory
	if m.Hash(msg.Plain("tide")); !m.idle() {
		t.Error("of a short text")
	}
	if m.Hash(msg.Plain(strings.Repeat("x", 2*maxKept))); m.idle() {
		t.Error("of a long text")
	}
}
