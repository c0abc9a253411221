package assemble

import (
	"fmt"
	"testing"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestNamesThatComeLate: the message that names a session's agent may be read before, between
// and after its turns, and others may call the agent by another name: all rows have the name
// of the session, or the most common one.
func TestNamesThatComeLate(t *testing.T) {
	turn := func(run string, at int64) []msg.Message {
		return []msg.Message{user(run, at), called(run, "t"+run, "Grep", at+1), result(run, "t"+run, at+2), said(run, "r"+run, at+3), stop(run, at+4)}
	}
	state := script{"legion", "s1", [][]msg.Message{{{Kind: msg.Status, Time: 0, Agent: msg.Agent{ID: "s1", Name: "heron", Kind: msg.KindAgent}}}}}
	turns := script{"legion", "s1", [][]msg.Message{turn("a", 10), append(turn("b", 20), sends("b", "d", "wren", "count", 26)...), turn("c", 30)}}
	other := func(text, run, from string, at int64) script {
		return script{"legion", "other " + run, [][]msg.Message{append(sends("u"+run, "d"+run, from, text, at), stop("u"+run, at+1))}}
	}
	asked := script{"legion", "s1", [][]msg.Message{{gets("e", "owl", "where", 41), stop("e", 42)}, {gets("f", "owl", "when", 51), stop("f", 52)}, {gets("g", "owl", "why", 61), stop("g", 62)}}}
	delegates := script{"legion", "s2", [][]msg.Message{{gets("x", "grey heron", "count", 26), stop("x", 29)}}}
	for name, c := range map[string]struct {
		scripts []script
		want    string
	}{
		"named by itself":                                {[]script{state, turns}, "heron"},
		"named by those that it writes to":               {[]script{turns, delegates}, "grey heron"},
		"named by both":                                  {[]script{state, turns, delegates}, "heron"},
		"named by those that write to it":                {[]script{asked, other("where", "1", "heron", 40)}, "heron"},
		"named by most of those":                         {[]script{asked, other("where", "1", "egret", 40), other("when", "2", "heron", 50), other("why", "3", "heron", 60)}, "heron"},
		"named by none":                                  {[]script{turns}, ""},
		"named by one whose call it may not have been":   {[]script{{"legion", "s1", [][]msg.Message{{gets("e", "owl", "where", 41)}}}, other("where", "1", "egret", 40), other("where", "2", "heron", 40)}, "egret"},
		"of those as many, the one that comes first":     {[]script{asked, other("where", "1", "egret", 40), other("when", "2", "heron", 50)}, "egret"},
		"a run that has a name of its own is no example": {[]script{state, {"legion", "s1", [][]msg.Message{turn("a", 10)}}}, "heron"},
	} {
		for _, s := range sameRows(t, c.scripts) {
			if s.Session == "s1" && s.Agent.Name != c.want {
				t.Errorf("%s: %s of run %s is of %q, want %q", name, s.Kind, s.Run, s.Agent.Name, c.want)
			}
		}
	}
}

// TestManyNames: a session remembers a bounded number of names.
func TestManyNames(t *testing.T) {
	g, err := openGroup(link.Key{Tenant: "default", Format: "f", Session: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		g.countAlias(fmt.Sprint("agent ", i), 1)
	}
	if len(g.Aliases) != maxAliases {
		t.Errorf("%d names", len(g.Aliases))
	}
}
