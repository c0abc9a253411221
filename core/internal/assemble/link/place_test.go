package link

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// session is a Tree made of maps.
type session struct {
	runs  map[string]*Place
	calls map[string]Call
}

func (s session) Place(run string) *Place { return s.runs[run] }

func (s session) Places(f func(string, *Place) bool) {
	for id, p := range s.runs {
		if !f(id, p) {
			return
		}
	}
}

func (s session) Call(id string) (Call, bool) {
	c, ok := s.calls[id]
	return c, ok
}

func (s session) CauseOf(run string) (Call, bool) {
	for _, c := range s.calls {
		if c.Child == run {
			return c, true
		}
	}
	return Call{}, false
}

// family is a session with a top-level run and a call of it.
func family() session {
	return session{
		map[string]*Place{"top": {Root: "top", Linked: true}},
		map[string]Call{"call": {ID: "call", Run: "top", Delegate: "scout", Edge: Edge{Child: "child", Link: msg.ByMetaFile}}},
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name         string
		run          string
		parent, call string
		by           msg.LinkMethod
		confidence   uint8
		top          bool
		want         Place
	}{
		{name: "nothing names a parent", run: "other", top: true, want: Place{Root: "other"}},
		{name: "evidence of no call", run: "other", by: msg.ByPrompt, top: true, want: Place{Root: "other"}},
		{name: "it names its call, by the same evidence", run: "child", call: "call", by: msg.ByMetaFile, confidence: 7, want: Place{Root: "top", Parent: "top", Call: "call", Link: msg.ByMetaFile, Confidence: 7, Linked: true, Delegate: "scout"}},
		{name: "its call names it", run: "child", want: Place{Root: "top", Parent: "top", Call: "call", Link: msg.ByMetaFile, Linked: true, Delegate: "scout"}},
		{name: "it names its call, by stronger evidence", run: "child", call: "call", by: msg.ByNativeID, want: Place{Root: "top", Parent: "top", Call: "call", Link: msg.ByNativeID, Linked: true, Delegate: "scout"}},
		{name: "it names its parent alone", run: "other", parent: "top", want: Place{Root: "top", Parent: "top", Link: msg.ByParent, Linked: true}},
		{name: "an orphan of a run that is read later", run: "other", parent: "later", want: Place{Root: "other", Parent: "later", Link: msg.ByParent}},
		{name: "an orphan of a call that is read later", run: "other", call: "later", by: msg.ByNativeID, want: Place{Root: "other", Call: "later", Link: msg.ByNativeID}},
		{name: "known to be a child, and no more", run: "other", parent: msg.UnknownRun, want: Place{Root: "other"}},
	} {
		p := Place{Root: c.run}
		if top := !Resolve(family(), c.run, &p, c.parent, c.call, c.by, c.confidence); top != c.top {
			t.Errorf("%s: top-level %t", c.name, top)
		}
		if d := cmp.Diff(c.want, p); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestAttach(t *testing.T) {
	s := family()
	s.runs["child"] = &Place{Root: "child"}
	s.runs["grandchild"] = &Place{Root: "child", Parent: "child"}
	s.runs["other"] = &Place{Root: "other", Linked: true}
	s.runs["child"].Join("", "call", msg.ByNativeID, 0)
	moved := Attach(s, "child")
	slices.Sort(moved)
	if d := cmp.Diff([]string{"child", "grandchild"}, moved); d != "" {
		t.Errorf("moved (-want +got):\n%s", d)
	}
	want := map[string]*Place{
		"top": {Root: "top", Linked: true}, "other": {Root: "other", Linked: true},
		"child":      {Root: "top", PriorRoot: "child", Parent: "top", Call: "call", Link: msg.ByNativeID, Linked: true, Delegate: "scout"},
		"grandchild": {Root: "top", PriorRoot: "child", Parent: "child", Linked: true},
	}
	if d := cmp.Diff(want, s.runs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if top, _ := Top(s, "grandchild"); top != "top" {
		t.Errorf("the top is %q", top)
	}

	// A cycle of parents is never closed, and an orphan waits for an orphan.
	s.runs["top"].Parent, s.runs["top"].Linked = "grandchild", false
	if moved := Attach(s, "top"); moved != nil {
		t.Errorf("moved %v below itself", moved)
	}
	s.runs["orphan"] = &Place{Root: "orphan", Parent: "top"}
	if moved := Attach(s, "orphan"); moved != nil {
		t.Errorf("moved %v to an orphan", moved)
	}
}

func TestRootsThatARunLeft(t *testing.T) {
	p := Place{Root: "a"}
	for _, root := range []string{"b", "c", "b", "d"} {
		p.MoveTo(root)
	}
	if d := cmp.Diff([]string{"a", "b", "c"}, p.LeftRoots()[:3]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	p.MoveTo("a")
	if slices.Contains(p.LeftRoots(), "a") {
		t.Errorf("left %v, and is in a", p.LeftRoots())
	}
	for _, root := range []string{"e", "f", "g", "h", "i", "j", "k", "l", "m"} {
		p.MoveTo(root)
	}
	if len(p.OlderRoots) != maxOlderRoots {
		t.Errorf("%d roots", len(p.OlderRoots))
	}
}

func TestEdges(t *testing.T) {
	none, file, native, other := Edge{}, Edge{"a", msg.ByMetaFile, 0}, Edge{"a", msg.ByNativeID, 0}, Edge{"b", msg.ByNativeID, 0}
	for _, c := range []struct {
		old, new Edge
		want     bool
	}{{none, file, true}, {file, native, true}, {native, file, false}, {native, native, false}, {file, other, false}} {
		if got := c.old.Weaker(c.new); got != c.want {
			t.Errorf("%+v is weaker than %+v: %t", c.old, c.new, got)
		}
	}
	prompt := Edge{"a", msg.ByPrompt, 80}
	for _, c := range []struct {
		name     string
		old, new Edge
		named    bool
		want     bool
	}{
		{"the first pair", none, prompt, false, false},
		{"the same pair", prompt, prompt, false, true},
		{"a surer pair", prompt, Edge{"a", msg.ByPrompt, 40}, false, false},
		{"a stronger link stays", native, prompt, false, true},
		{"no pair any more", prompt, Edge{Link: msg.ByPrompt}, false, false},
		{"no pair, and none before", none, Edge{Link: msg.ByPrompt}, false, true},
		{"another correlation's pair stays", native, Edge{Link: msg.ByPrompt}, false, true},
		{"the protocol's child stays", native, Edge{Link: msg.ByNativeID}, true, true},
	} {
		if got := c.old.Keeps(c.new, c.named); got != c.want {
			t.Errorf("%s: keeps %t", c.name, got)
		}
	}
}

func TestAccepts(t *testing.T) {
	remote := func(correlation string, by msg.LinkMethod) *Remote {
		return &Remote{CallSite: CallSite{Call: "c"}, Name: correlation, Link: by}
	}
	apart := remote("x", msg.ByPrompt)
	apart.Apart = true
	for _, c := range []struct {
		name string
		at   Place
		up   *Remote
		want bool
	}{
		{"the first call", Place{}, remote("x", msg.ByPrompt), true},
		{"its own session has the parent", Place{Parent: "p"}, remote("x", msg.ByNativeID), false},
		{"its own session has the call", Place{Call: "c"}, remote("x", msg.ByNativeID), false},
		{"none, and none before", Place{}, nil, false},
		{"none any more", Place{Remote: remote("x", msg.ByPrompt)}, nil, true},
		{"another correlation has none", Place{Remote: remote("y", msg.ByPrompt)}, nil, false},
		{"the same call", Place{Remote: remote("x", msg.ByPrompt)}, remote("x", msg.ByPrompt), false},
		{"the same call, apart", Place{Remote: apart}, remote("x", msg.ByPrompt), false},
		{"a stronger correlation", Place{Remote: remote("y", msg.ByPrompt)}, remote("x", msg.ByNativeID), true},
		{"another correlation, as strong", Place{Remote: remote("y", msg.ByPrompt)}, remote("x", msg.ByPrompt), false},
		{"a weaker correlation", Place{Remote: remote("y", msg.ByNativeID)}, remote("x", msg.ByPrompt), false},
	} {
		if got := c.at.Accepts("x", c.up); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestForeignRoots(t *testing.T) {
	here, there := Key{"t", "f", "s"}, Key{"t", "g", "s"}
	trace := there.Trace("run")
	if got := here.Trace(Foreign(trace)); got != trace {
		t.Errorf("trace %v, want %v", got, trace)
	}
	if here.Trace("run") == trace {
		t.Error("two sessions share a trace")
	}
	if k, err := ParseKey(here.String()); err != nil || k != here {
		t.Errorf("%v, %v", k, err)
	}
	if _, err := ParseKey("t"); err == nil {
		t.Error("a key of one part is read")
	}
}
