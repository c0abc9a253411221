package ident

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func TestIDs(t *testing.T) {
	long := strings.Repeat("x", Max)
	hash := "long:" + msg.HashKey(`"`+long+`"`)
	for in, want := range map[string][2]string{ // Of, OrNumber
		`"a"`:                                  {"a", "a"},
		`"caf\u00e9"`:                          {"café", "café"},
		`""`:                                   {},
		`null`:                                 {},
		`{"a":1}`:                              {},
		`[` + strings.Repeat("1,", Max) + `1]`: {},
		`7`:                                    {"", "7"},
		strings.Repeat("7", 2*Max):             {"", strings.Repeat("7", Max)},
		`"` + long + `"`:                       {hash, hash},
		`"` + long[:Max-2] + `"`:               {long[:Max-2], long[:Max-2]},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		v := doc.Root()
		if got := [...]string{Peek(v), PeekOrNumber(v)}; got != want {
			t.Errorf("%.20s: peeked %q, want %q", in, got, want)
		}
		if v.Is(jsonv.String) && v.Len() == 0 && len(want[0]) > 16 && len(doc.Unread(16, func([]string) bool { return false })) == 0 {
			t.Errorf("%.20s: counts as read", in)
		}
		if got := [...]string{Of(v), OrNumber(v)}; got != want {
			t.Errorf("%.20s: %q, want %q", in, got, want)
		}
		if len(doc.Unread(16, func([]string) bool { return false })) > 0 && v.Is(jsonv.String) {
			t.Errorf("%.20s: does not count as read", in)
		}
		if v.Is(jsonv.String) && (!Is(v, want[0]) || Is(v, want[0]+"x")) {
			t.Errorf("%.20s is not %q", in, want[0])
		}
	}
}

// TestIsNot: an id that is another one does not count as read, however long it is.
func TestIsNot(t *testing.T) {
	for _, in := range []string{`"another than that one"`, `"` + strings.Repeat("x", Max) + `"`} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if Is(doc.Root(), "the one") || len(doc.Unread(16, func([]string) bool { return false })) == 0 {
			t.Errorf("%.20s counts as read", in)
		}
	}
}

func TestFirst(t *testing.T) {
	var doc jsonv.Doc
	if err := doc.Parse([]byte(`[null,"",7,"the first of them","the second of them"]`)); err != nil {
		t.Fatal(err)
	}
	var all []jsonv.Value
	for v := range doc.Root().Elems() {
		all = append(all, v)
	}
	if got := First(all...); got != "the first of them" || First(all[:3]...) != "" {
		t.Error(got)
	}
	if n := len(doc.Unread(16, func([]string) bool { return false })); n != 1 {
		t.Errorf("%d ids are unread, want the second", n)
	}
}

func TestBounded(t *testing.T) {
	long := strings.Repeat("x", Max+1)
	if Bounded(long[1:]) != long[1:] || Bounded(long) != "long:"+msg.HashKey(long) {
		t.Error(Bounded(long))
	}
}

func TestOfFile(t *testing.T) {
	for in, want := range map[string]string{"": "", "/a/b.jsonl": "b", "/a/b.jsonl.gz": "b", `C:\a\b.json`: "b", "b": "b", "a/\xff.json": "\uFFFD", ".json": ".json"} {
		if got := OfFile(in, ".json"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestBelow(t *testing.T) {
	for in, want := range map[string]string{"": "", "/v1/threads/7/runs": "7", "/v1/threads/7?limit=2": "7", "/v1/threads/": "", "/v1/runs": "", "/threads/7": "7"} {
		if got := Below(in, "/threads/"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestWithin: an id that counts has its scope before it, and a provider's own has not.
func TestWithin(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "call_0": "r/call_0", "functions.search:1": "r/functions.search:1", "call_LOd3dMxgYxmNLWZVWXra9xWQ": "call_LOd3dMxgYxmNLWZVWXra9xWQ",
	} {
		if got := Within("r", id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
		if own := Own("r", want); own != "" && own != id || own == "" && want != id {
			t.Errorf("%q: its own is %q", want, own)
		}
	}
}
