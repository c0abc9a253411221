package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config"
)

// TestSurvey: the report of a source of files or databases has the paths that nothing matches, and each file
// that is not read, once.
func TestSurvey(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.jsonl", "b.jsonl", "c.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Types{Sources: SourceTypes()}.Parse("e.yaml", []byte("data_dir: "+dir+"/data\nsources:\n"+
		"  - {name: well, type: file, format: codex, paths: ['"+dir+"/a.jsonl']}\n"+
		"  - {name: denied, type: file, format: codex, paths: ['"+dir+"/*.jsonl']}\n"+
		"  - {name: none, type: file, format: codex, paths: ['"+dir+"/none/**']}\n"+
		"  - {name: text, type: sqlite, format: goose, paths: ['"+dir+"/a.*']}\n"+
		"  - {name: nowhere, type: sqlite, format: goose, paths: ['"+dir+"/none/*.db']}\n"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	// The tests may run as a user who may read everything.
	denied := func(path string) error {
		if strings.HasSuffix(path, "b.jsonl") {
			return &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		}
		return nil
	}
	surveys, err := ReportFiles(t.Context(), Decoders{}, cfg, false, denied)
	if err != nil {
		t.Fatal(err)
	}
	var says []string
	for i := range surveys {
		says = append(says, surveys[i].Warnings()...)
	}
	want := []string{
		"source denied: DIR/b.jsonl is not read: open DIR/b.jsonl: permission denied",
		"source none: no file matches its paths",
		"source text: DIR/a.jsonl is not read: not a SQLite database",
		"source nowhere: no database matches its paths",
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "DIR", dir)
	}
	if d := cmp.Diff(want, says); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !errors.Is(denied("b.jsonl"), fs.ErrPermission) || len(surveys[1].Files) != 2 || len(surveys[1].Unread) != 1 {
		t.Errorf("%+v", surveys[1])
	}
}

// TestMisfit: a few unknown events are no sign of a wrong format, and neither is a file
// of two lines.
func TestMisfit(t *testing.T) {
	for f, want := range map[FormatMatch]bool{{}: false, {2, 2}: false, {3, 3}: true, {343, 343}: true, {100, 90}: true, {100, 89}: false} {
		if f.Mismatch() != want {
			t.Errorf("%+v: %t", f, !want)
		}
	}
}
