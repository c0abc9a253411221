package ident

import (
	"strings"
	"testing"
)

// TestPath: a path has its folders and its file with slashes of either kind, and an id of it is text.
func TestPath(t *testing.T) {
	for path, want := range map[string][4]string{ // folder, session above it, after teams or tasks, name
		"":                               {},
		"a.jsonl":                        {"", "", "", "a"},
		"/p/s/subagents/a.jsonl.2.gz":    {"subagents", "s", "", "a"},
		`C:\teams\reef\inboxes\ada.json`: {"inboxes", "", "reef", "ada"},
		"/tasks/reef/7.meta.json":        {"reef", "", "reef", "7"},
		"/tasks/7.json":                  {"tasks", "", "", "7"},
		"/x/teams/":                      {"teams", "", "", ""},
		"/x/\xff/y.txt":                  {"\uFFFD", "", "", "y.txt"},
		"/teams/a/teams/b/.jsonl":        {"b", "", "b", ".jsonl"},
	} {
		p := PathOf(path)
		if got := [...]string{p.Dir(), p.Before("subagents"), p.After("teams", "tasks"), p.Name(".jsonl", ".meta.json", ".json")}; got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	if name := PathOf("/x/" + strings.Repeat("y", Max+1)).Name(".json"); !strings.HasPrefix(name, "long:") {
		t.Error(name)
	}
}
