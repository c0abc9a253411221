package config_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPathsAreRelativeToTheFile loads a file from other directories than its own: every
// command means the same data directory and the same transcripts.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "conf", "earshot.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "data_dir: data\nsources: [{name: a, type: file, format: legion, paths: [\"in/*.jsonl\", \"/abs/*.jsonl\", \"~/x/*.jsonl\"]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "/home/me", name == "HOME" }
	check := func(path, base string) {
		t.Helper()
		c, err := types.Load(path, env)
		if err != nil {
			t.Fatal(err)
		}
		got := append([]string{c.DataDir}, files(c).Paths...)
		for i, want := range []string{filepath.Join(base, "data"), filepath.Join(base, "in/*.jsonl"), "/abs/*.jsonl", "/home/me/x/*.jsonl"} {
			if got[i] != want {
				t.Errorf("%s: got %s, want %s", path, got[i], want)
			}
		}
	}
	check(file, filepath.Dir(file))
	t.Chdir(dir)
	check("conf/earshot.yaml", "conf")
	t.Chdir(filepath.Join(dir, "conf"))
	check("earshot.yaml", "")
	if c, err := types.Load("earshot.yaml", env); err != nil || c.DataDir != "data" {
		t.Errorf("%v, %v", c.DataDir, err)
	}
}
