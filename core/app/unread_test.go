package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source/file"
)

// TestCompareFiles: a file that has the inode of a deleted one is compared with the stream of its own content.
func TestCompareFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, []byte("{}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now, err := file.ContentOf(path)
	if err != nil {
		t.Fatal(err)
	}
	source := &config.Source{Section: &file.Config{StartAt: string(file.Beginning)}}
	streams := []ReadUpTo{{now.Inode + "-0123456789abcdef", "/deleted", 1000}}
	for want, report := range map[UnreadFiles]*FileReport{
		{Bytes: 6, Files: 1, Gone: 1}: {Files: []string{path}},
		{Gone: 1}:                     {},
	} {
		if got := CompareFiles(source, report, streams); got != want {
			t.Error(cmp.Diff(want, got))
		}
	}
}
