package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestEveryAttackHasATest looks for each test of the table in the files of its package.
func TestEveryAttackHasATest(t *testing.T) {
	t.Chdir("../../..")
	b, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, name := range r.tests {
			pattern := "^func " + regexp.QuoteMeta(name) + "\\("
			if out, err := exec.Command("grep", "-rlE", "--include=*_test.go", pattern, r.pkg).CombinedOutput(); err != nil {
				t.Errorf("%s: no %s in %s: %v %s", r.attack, name, r.pkg, err, out)
			}
		}
	}
}
