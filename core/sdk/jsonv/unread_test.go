package jsonv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// unreadPlainly is Unread as its comment has it, with the path of every value at hand.
func unreadPlainly(v Value, path []string, size int, skip func([]string) bool) (found []string, untouched bool) {
	if v.node().read {
		return nil, false
	}
	untouched = true
	each := func(name string, v Value) {
		below, same := unreadPlainly(v, append(slices.Clone(path), name), size, skip)
		found, untouched = append(found, below...), untouched && same
	}
	switch v.Kind() {
	case String:
		if len(v.Escaped()) >= size && !skip(path) {
			found = append(found, strings.Join(path, "/")+"="+string(v.Peek()))
		}
		return found, true
	case Object:
		for k, m := range v.Members() {
			each(k.String(), m)
		}
	case Array:
		for e := range v.Elems() {
			each("*", e)
		}
	}
	if untouched && len(found) > 0 {
		found = []string{strings.Join(path, "/") + "=" + string(v.Peek())}
	}
	return found, untouched
}

// TestUnreadPaths compares Unread, which copies the keys of few values, with the plain way, over
// documents of which any part was read and any path is skipped.
func TestUnreadPaths(t *testing.T) {
	rng, some := rand.New(rand.NewPCG(3, 4)), 0
	var value func(depth int) string
	value = func(depth int) string {
		kind := rng.IntN(7)
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0:
			return []string{"1", "null", "true", "{}", "[]", `""`}[rng.IntN(6)]
		case 1, 2, 3:
			return `"` + strings.Repeat([]string{"x", `\n`}[rng.IntN(2)], rng.IntN(12)) + `"`
		}
		var parts []string
		for range rng.IntN(5) {
			part := value(depth - 1)
			if kind > 4 {
				part = `"` + []string{"a", "b", `\u00e9`, "long key"}[rng.IntN(4)] + `":` + part
			}
			parts = append(parts, part)
		}
		if kind > 4 {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for range 20_000 {
		in := value(5)
		var d Doc
		if err := d.Parse([]byte(in)); err != nil {
			t.Fatal(in, err)
		}
		for i := range d.nodes {
			if rng.IntN(12) == 0 && !d.nodes[i].key {
				d.nodes[i].read = true
			}
		}
		size, kept := 1+rng.IntN(6), rng.IntN(4)
		skip := func(path []string) bool { return kept > 0 && len(strings.Join(path, "/"))%4 == kept }
		want, _ := unreadPlainly(d.Root(), nil, size, skip)
		var got []string
		for _, u := range d.Unread(size, skip) {
			got = append(got, strings.Join(u.Path, "/")+"="+string(u.Value.Peek()))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s\n got %q\nwant %q", in, got, want)
		}
		if len(want) > 0 {
			some++
		}
	}
	if some < 5000 {
		t.Errorf("%d documents have unread values: that shows little", some)
	}
}

// TestFirstText: the first text that is not empty, behind which no value counts as read.
func TestFirstText(t *testing.T) {
	var d Doc
	if err := d.Parse([]byte(`{"a":"","b":"said","c":"later"}`)); err != nil {
		t.Fatal(err)
	}
	v := d.Root()
	if got := FirstText(v.Get("none"), v.Get("a"), v.Get("b"), v.Get("c")).String(); got != "said" {
		t.Errorf("%q", got)
	}
	if left := d.Unread(1, func([]string) bool { return false }); len(left) != 1 || left[0].Value.PeekStr() != "later" {
		t.Errorf("unread: %v", left)
	}
}
