package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinksResolve: each link of a page to a file or a heading of this repository leads there.
func TestLinksResolve(t *testing.T) {
	pages := map[string]string{}
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			text, err := os.ReadFile(path)
			pages[path] = fenced.ReplaceAllString(string(text), "")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for page, text := range pages {
		name, _ := filepath.Rel(root(t), page)
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") {
				continue
			}
			n++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s: no such file", name, m[1])
			} else if anchor != "" && !hasHeading(pages[to], anchor) {
				t.Errorf("%s: %s: no such heading", name, m[1])
			}
		}
	}
	if n < 200 {
		t.Errorf("%d links were looked at", n)
	}
}

// hasHeading reports whether a page has a heading with that anchor, as GitHub makes it.
func hasHeading(page, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := noAnchor.ReplaceAllString(linked.ReplaceAllString(strings.ToLower(m[1]), ""), "")
		if strings.ReplaceAll(strings.TrimSpace(text), " ", "-") == anchor {
			return true
		}
	}
	return false
}
