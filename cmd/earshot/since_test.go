package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/inspect"
)

func TestSinceTakesDaysAndWeeks(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "24h": day, "7d": 7 * day, "2w": 14 * day, "441d00h": 441 * day, "1w2d3h": 9*day + 3*time.Hour, "1.5d": 36 * time.Hour,
	} {
		var s since
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%s: %s, %v", text, time.Duration(s), err)
		}
	}
	for want, d := range map[string]time.Duration{"": 0, "7d": 7 * day, "1d": day, "6h": 6 * time.Hour, "1h30m0s": 90 * time.Minute} {
		if got := (*since)(&d).String(); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for _, text := range []string{"", "7", "d", "2w-1h", "-3d", "1d2w", "99999999999d", "7 days"} {
		var s since
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %s", text, time.Duration(s))
		}
	}
}

// TestTablesFitTheTerminal cuts and leaves out columns until a table is as wide as the
// terminal, and prints all of it where there is none.
func TestTablesFitTheTerminal(t *testing.T) {
	if _, out := fit([]column{{name: "origin", least: 8, path: true}}, [][]string{{"/home/ana/a.jsonl:17"}}, 12); out[0][0] != "…/a.jsonl:17" {
		t.Errorf("a path is cut to %q", out[0][0])
	}
	if _, out := fit([]column{{name: "bottleneck", least: 16, ends: true}}, [][]string{{"tool Bash in diver-of-the-thirteenth-depth 1m30s"}}, 28); out[0][0] != "tool Bash…teenth-depth 1m30s" {
		t.Errorf("a bottleneck is cut to %q", out[0][0])
	}
	if _, out := fit([]column{{name: "who", least: 20}, {name: "trace", least: 8, id: true}}, [][]string{{"the pilot of the harbour", "4bf92f3577b34da6"}}, 24); out[0][0] != "the pilot of …" || out[0][1] != "4bf92f35" {
		t.Errorf("in a window that is too narrow: %q", out[0])
	}
	columns := []column{{name: "session", least: 8, id: true}, {name: "format", drop: 1}, {name: "bar", drop: 2}, {name: "begins with", least: 20}}
	rows := [][]string{
		{"0801e1da-1f96-4461-b296-39460b58ea78", "claude-code", "\x1b[31m█████\x1b[0m", "Find out why the checkout fails and mend it, then say what it was"},
		{"s", "agno", "█████", "short"},
	}
	for _, width := range []int{0, 200, 120, 80, 60, 40} {
		c, out := fit(columns, rows, width)
		for _, r := range out {
			n := -gap
			for i := range r {
				n += gap + widths(c, out)[i]
			}
			if width > 0 && n > width {
				t.Errorf("%d columns in a terminal of %d: %q", n, width, r)
			}
			if len(r) != len(c) {
				t.Fatalf("%d cells of %d columns", len(r), len(c))
			}
		}
		if width == 0 && strings.Join(out[0], "|") != strings.Join(rows[0], "|") {
			t.Errorf("without a terminal: %q", out[0])
		}
		if width == 60 && out[0][0] != "0801e1da" {
			t.Errorf("an id has the room of a text: %q", out[0])
		}
		if width == 40 && (len(c) != 3 || out[0][0] != rows[0][0][:utf8.RuneCountInString(out[0][0])]) {
			t.Errorf("narrow: %q", out[0])
		}
	}
}

// TestTailTellsHowLong: a span with a long name has its duration, and no line is wider than the screen.
func TestTailTellsHowLong(t *testing.T) {
	for _, l := range []inspect.TailLine{
		{Kind: "chat", Name: "claude-sonnet-4-5-20250929", TookMS: 1500},
		{Kind: "tool_result", Name: "mcp__harbour__count_the_buoys", TookMS: 61000, Text: strings.Repeat("no buoy ", 40), Error: true},
	} {
		var out strings.Builder
		if err := writeTailLine(&out, l, time.Now()); err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSpace(out.String())
		if took := inspect.Span(time.Duration(l.TookMS * 1e6)); !strings.Contains(line, " "+took) || inspect.Visible(strings.TrimRight(out.String(), "\n")) > 160 {
			t.Errorf("without %s, or too wide: %q", took, line)
		}
	}
}

// TestUnknownCommandsAreUsage has an unknown command, of a group too, end with the exit
// code of wrong usage and a suggestion.
func TestUnknownCommandsAreUsage(t *testing.T) {
	for _, args := range [][]string{{"sesions"}, {"status"}, {"dlq", "lsit"}, {"plugin", "tets"}} {
		c := newRoot()
		c.SetArgs(args)
		c.SetOut(new(strings.Builder))
		if err := c.Execute(); !isUsage(err) || !strings.Contains(err.Error(), "unknown command") || !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestWrongUsageIsOneClearSentence: the error names the usage, in the words of the command's help.
func TestWrongUsageIsOneClearSentence(t *testing.T) {
	t.Setenv("EARSHOT_CONFIG", filepath.Join(t.TempDir(), "none.yaml"))
	for line, want := range map[string]string{
		"explain":                 "want `earshot explain TRACE [flags]`, got 0 arguments",
		"attach a b":              "letta [flags]`, got 2 arguments",
		"decode":                  "want `earshot decode --format FORMAT",
		"run --":                  "want `earshot run [-- COMMAND...] [flags]`, got 0 arguments",
		"sessions -n x":           `invalid argument "x" for "-n, --limit" flag: invalid syntax`,
		"tail --kind toolcall":    `--kind: kind "toolcall": not one of unknown user assistant`,
		"tail --spans --kind run": `--kind: operation "run": not one of invoke_agent chat execute_tool invoke_workflow`,
		"completion zhs":          "did you mean zsh?",
		"plugin new Bad_Name":     `name "Bad_Name": want lower case letters`,
		"up --listen here":        `--listen "here" is no loopback address`,
		"up --listen [::1]:65536": `--listen "[::1]:65536" is no loopback address`,
		"replay no-file":          "open no-file: no such file or directory",
	} {
		c := newRoot()
		c.SetArgs(strings.Fields(line))
		c.SetOut(io.Discard)
		if err := c.Execute(); err == nil || !strings.Contains(err.Error(), want) || line != "replay no-file" && !isUsage(err) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := newPerson(t).run("run", "--", "no-such-program"); !errors.As(err, new(notStarted)) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestCommandsAreDocumented: docs/commands.md has every command.
func TestCommandsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newRoot().Commands() {
		if !regexp.MustCompile("(?m)^\\|.*`" + c.Name() + "[ `]").Match(page) {
			t.Errorf("the table of docs/commands.md lacks %s", c.Name())
		}
	}
}
