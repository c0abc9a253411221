//go:build typescript

package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/scaffold"
)

// A decoder on the SDK of TypeScript passes the suite and has the output of the Go decoder of
// its format.
func TestTypeScript(t *testing.T) {
	dir := t.TempDir()
	d, err := scaffold.New(scaffold.Settings{Name: "reference", Language: "typescript"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("testdata/typescript/decoder.ts")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "reference")
	if err := os.WriteFile(filepath.Join(root, "src", "decoder.ts"), program, 0o644); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "sh", "-c", "npm install --no-audit --no-fund && npm run build")
	install.Dir = root
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	reference(t, "node", filepath.Join(root, "dist", "decoder.js"))
}
