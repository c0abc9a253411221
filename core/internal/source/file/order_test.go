package file

import (
	"slices"
	"testing"
)

// TestBacklogOrder: metadata before transcripts, a parent's folder before its children's, and then by the
// time of the last change.
func TestBacklogOrder(t *testing.T) {
	files := func() []found {
		list := []found{{path: "/p/child/old"}, {path: "/p/new"}, {path: "/p/old"}, {path: "/p/meta", metadata: true}, {path: "/p/child/new"}}
		for i, mtime := range []int64{1, 9, 2, 5, 8} {
			list[i].mtime = mtime
		}
		return list
	}
	for newest, want := range map[bool][]string{
		false: {"/p/meta", "/p/old", "/p/new", "/p/child/old", "/p/child/new"},
		true:  {"/p/meta", "/p/new", "/p/old", "/p/child/new", "/p/child/old"},
	} {
		list := files()
		inOrder(list, newest)
		var got []string
		for _, f := range list {
			got = append(got, f.path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("newest first %t: %v", newest, got)
		}
	}
}
