package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestPluginNewNotes: a decoder that cannot be built or run as it is, is written with a note; one that cannot be
// written is wrong usage.
func TestPluginNewNotes(t *testing.T) {
	dir := t.TempDir()
	scaffold := func(args ...string) (notes string, err error) {
		var out, notesOut bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&notesOut)
		root.SetArgs(append([]string{"plugin", "new", "--dir", dir}, args...))
		err = root.Execute()
		return notesOut.String(), err
	}
	if notes, err := scaffold("tide"); err != nil || notes != "" {
		t.Errorf("%v, notes %q", err, notes)
	}
	if notes, err := scaffold("agno"); err != nil || !strings.Contains(notes, "plugins.agno.replace_bundled") {
		t.Errorf("the name of a bundled decoder: %v, notes %q", err, notes)
	}
	if _, err := scaffold("tide"); err == nil || isUsage(err) || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a folder that is there: %v", err)
	}
	for _, args := range [][]string{{"Tide"}, {"quay", "--language", "cobol"}, {"quay", "--replace", dir}, {"quay", "--module", "/quay"}, {"quay", "--language", "python", "--module", "quay"}} {
		if _, err := scaffold(args...); !isUsage(err) {
			t.Errorf("%q: %v", args, err)
		}
	}
	t.Setenv("PATH", "")
	if notes, err := scaffold("pier", "--language", "typescript"); err != nil || !strings.Contains(notes, "npm, which builds it, is not in the PATH") {
		t.Errorf("without npm: %v, notes %q", err, notes)
	}
}
