package browser

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// axeVersion is of the rules of accessibility that pages are held to. They come from npm when the test
// runs, and are no part of the product.
const axeVersion = "4.14.1"

// axe returns the source of the rules.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "axe-core@"+axeVersion)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm pack axe-core: %v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, "axe-core-"+axeVersion+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("axe.min.js: %v", err)
		}
		if h.Name != "package/axe.min.js" {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// violations returns the rules that a page breaks, with the elements.
func (b *tab) violations(t *testing.T, source string) []string {
	t.Helper()
	eval[any](t, b, source+";undefined")
	eval[any](t, b, `window.found = null; axe.run(document, {resultTypes: ["violations"]}).then(r => {
		window.found = r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.html.slice(0, 100) + (n.any[0] ? " " + n.any[0].message : "")).join(" | "));
	}, e => { window.found = [String(e)]; }); undefined`)
	b.until(t, `window.found`)
	return eval[[]string](t, b, `window.found`)
}
