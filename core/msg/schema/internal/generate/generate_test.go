package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratedFilesAreCurrent fails when a file does not follow from the schema.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	const root = "../../../../.."
	g, err := readTypes(filepath.Join(root, "core/msg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		old, err := os.ReadFile(filepath.Join(root, o.path))
		if err != nil {
			t.Fatal(err)
		}
		want, err := o.render(g, string(old))
		if err != nil {
			t.Fatalf("%s: %v", o.path, err)
		}
		if string(old) != want {
			t.Errorf("%s is stale: run go generate ./core/msg/schema\n%s", o.path, cmp.Diff(string(old), want))
		}
	}
}
