package main

import (
	"strings"
	"testing"
)

// TestSourcesWithoutAFile: the sources of a command without a configuration are the agents with a conversation, where earshot up has run. Where it has and
// no agent has one there are none, and doctor notes that.
func TestSourcesWithoutAFile(t *testing.T) {
	p := newPerson(t)
	if _, err := new(configFile).loadSources(t.Context()); err == nil || !strings.Contains(err.Error(), "no configuration") {
		t.Errorf("before earshot up has run: %v", err)
	}
	p.write("share/earshot/page.addr", "")
	c, err := new(configFile).loadSources(t.Context())
	if err != nil || len(c.Sources) != 0 || c.DataDir != p.path("share/earshot") {
		t.Fatalf("before a conversation: %+v, %v", c, err)
	}
	d := &doctor{cfg: c}
	if d.decoders(t.Context()); len(d.found) != 1 || d.found[0].Status != "note" || d.found[0].Check != "sources" {
		t.Errorf("the doctor found %+v", d.found)
	}
	p.write(".claude/projects/-work/00000000-0000-4000-8000-000000000001.jsonl", `{"type":"user"}`+"\n")
	if c, err = new(configFile).loadSources(t.Context()); err != nil || len(c.Sources) != 1 || c.Sources[0].Name != "claude-code" || c.DataDir != p.path("share/earshot") {
		t.Errorf("with a conversation: %+v, %v", c, err)
	}
}
