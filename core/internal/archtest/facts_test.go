package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aTest is a reference to tests in a table: the package in backquotes, then names.
var aTest = regexp.MustCompile("`([a-z][^`]*)` ((?:Test|Fuzz)\\w+(?:, (?:Test|Fuzz)\\w+)*)")

// TestFactsNameTheirTests fails when a row of docs/facts names no test, or one of docs/facts or
// docs/guarantees.md a test that does not exist in that package.
func TestFactsNameTheirTests(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "facts", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages of facts: %v", err)
	}
	guarantees := filepath.Join(root(t), "docs", "guarantees.md")
	for _, page := range append(pages, guarantees) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ID ") {
				continue
			}
			named := aTest.FindAllStringSubmatch(line, -1)
			if len(named) == 0 && page != guarantees { // some name a check of the conformance suite
				t.Errorf("%s:%d: the row names no test", filepath.Base(page), n+1)
			}
			for _, m := range named {
				for name := range strings.SplitSeq(m[2], ", ") {
					if !declared(t, m[1], name) {
						t.Errorf("%s:%d: %s has no %s", filepath.Base(page), n+1, m[1], name)
					}
				}
			}
		}
	}
}

// declared reports whether a test of the folder declares the function.
func declared(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
