package decodertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoldensAreTiedToTheRevision changes the cases of a decoder: a golden of the same frames
// may change only with a higher Revision.
func TestGoldensAreTiedToTheRevision(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step := func(name string, revision uint32, write bool, want string) {
		t.Helper()
		err := checkRevision(dir, revision, write)
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
		} else if want != "" {
			t.Errorf("%s: no error, want %q", name, want)
		}
	}
	write("a/in.jsonl", "{}\n")
	write("a/want.jsonl", "{\"key\":\"1\"}\n")
	step("without a file", 1, false, "")
	step("written", 1, true, "")
	step("unchanged", 1, false, "")
	write("b/in.jsonl", "{}\n")
	step("a new case", 1, false, "-update")
	step("a new case, written", 1, true, "")
	write("a/want.jsonl", "{\"key\":\"2\"}\n")
	step("a changed golden", 1, false, "in a: raise Revision above 1")
	step("a changed golden, written", 1, true, "in a: raise Revision above 1")
	step("a higher revision", 2, false, "-update")
	step("a higher revision, written", 2, true, "")
	step("a lower revision", 1, false, "-update")
	write("a/in.jsonl", "[]\n")
	write("a/want.jsonl", "{\"key\":\"3\"}\n")
	step("other frames", 2, true, "")
	step("other frames, unchanged", 2, false, "")
}
