package inspect

import "testing"

func TestAgent(t *testing.T) {
	for want, c := range map[string][2]string{"pilot": {"pilot", "legion"}, "(legion)": {"", "legion"}, "(unknown)": {"", ""}} {
		if got := Agent(c[0], c[1]); got != want {
			t.Errorf("Agent(%q, %q) is %q, want %q", c[0], c[1], got, want)
		}
	}
	d := SlowDelegation{caller: Agent("", "legion")}
	if got := d.Pair(); got != "(legion) → (unknown)" {
		t.Errorf("a delegation between agents without names is %q", got)
	}
}
