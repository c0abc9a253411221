package wrap

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestErase: recordings of the erased conversation go, messages of it in others too, and what a wrapper writes stays and is named.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "acp"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, "acp", name+".jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	alone, both, other, busy := write("alone", "{}\n{}\n"), write("both", "{\"s\":\"gone\"}\n{\"s\":\"stays\"}\n"), write("other", "{\"s\":\"stays\"}\n"), write("busy", "{\"s\":\"gone\"}\n")
	writing, err := os.Open(busy)
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	if err := lock(writing); err != nil {
		t.Fatal(err)
	}
	n, left, err := Erase(dir, func(path string) bool { return path == alone }, func(b []byte) bool { return bytes.Contains(b, []byte("gone")) })
	if err != nil || n != 2 || !slices.Equal(left, []string{busy}) {
		t.Errorf("%d changed, %v are busy, %v", n, left, err)
	}
	for path, want := range map[string]string{both: "{\"s\":\"stays\"}\n", other: "{\"s\":\"stays\"}\n", busy: "{\"s\":\"gone\"}\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "acp", "*")); len(all) != 3 {
		t.Errorf("left: %v", all)
	}
}
