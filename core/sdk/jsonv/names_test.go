package jsonv

import (
	"strings"
	"testing"
)

// TestNamesReadLikeGet: of any object, Read finds what Get finds, the last of repeated members
// and escaped names too, and allocates nothing.
func TestNamesReadLikeGet(t *testing.T) {
	long := strings.Repeat("n", 2*maxName)
	keys := []string{"a", "name", "text", "nam", long}
	names := NamesOf(keys...)
	for _, in := range []string{
		`{"name":1,"text":{"a":2},"a":null}`, `{"a":1,"a":2,"":3}`, `{"\u006eame":1,"nam":2,"names":3}`, `{"` + long + `":1,"` + long + `n":2}`,
		`{}`, `[1]`, `"name"`, `null`,
	} {
		var d Doc
		if err := d.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		var got [5]Value
		read := func() { names.Read(d.Root(), &got[0], &got[1], &got[2], &got[3], &got[4]) }
		read()
		for i, key := range keys {
			if want := d.Root().Get(key); got[i] != want {
				t.Errorf("%.40s: %.8q is %s, want %s", in, key, got[i].Peek(), want.Peek())
			}
		}
		if n := testing.AllocsPerRun(10, read); n > 0 && !strings.Contains(in, `\`) {
			t.Errorf("%.40s: %v allocations", in, n)
		}
	}
}
