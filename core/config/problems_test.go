package config_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/exporters"
)

var update = flag.Bool("update", false, "rewrite testdata/problems.txt, and fail")

// types are all sources and exporters.
var types = config.Types{Sources: app.SourceTypes(), Exporters: exporters.Types()}

// TestProblems reads bad files and compares every problem with
// testdata/problems.txt.
func TestProblems(t *testing.T) {
	const file = "testdata/problems.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "=== ")
	rewritten := head
	cases := strings.Split(rest, "\n=== ")
	for _, c := range cases {
		title, body, _ := strings.Cut(c, "\n")
		input, want, found := strings.Cut(body, "----\n")
		if !found {
			t.Fatalf("%s: case %q has no ----", file, title)
		}
		want = strings.TrimRight(want, "\n")
		got := ""
		if _, err := types.Parse("earshot.yaml", []byte(input), config.Environment); err != nil {
			got = err.Error()
		}
		rewritten += "=== " + title + "\n" + input + "----\n" + got + "\n\n"
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("%s\nproblems (-want +got):\n%s", input, diff)
			}
			if got == "" {
				t.Error("a bad file passed")
			}
		})
	}
	if len(cases) < 40 {
		t.Errorf("%d cases: some are gone", len(cases))
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(rewritten, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatal("rewrote " + file + "; read the diff")
	}
}
