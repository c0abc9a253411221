package config

import "testing"

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		text, want string
		changed    bool
	}{
		{"", "", false},
		{"plain", "plain", false},
		{"${HOST}", "db.internal", true},
		{"tcp://${HOST}:${PORT}/x", "tcp://db.internal:7801/x", true},
		{"${EMPTY}", "", true},
		{"${EMPTY:-fallback}", "fallback", true},
		{"${HOST:-fallback}", "db.internal", true},
		{"${NOWHERE:-fallback}", "fallback", true},
		{"${NOWHERE:-}", "", true},
		{"${NOWHERE:-http://h:1/$x}", "http://h:1/$x", true},
		{"$", "$", false},
		{"cost: $5", "cost: $5", false},
		{`^\d+$`, `^\d+$`, false},
		{"$HOST", "$HOST", false},
		{"$$", "$", false},
		{"$${HOST}", "${HOST}", false},
		{"$$$${HOST}", "$${HOST}", false},
		{"$$${HOST}", "$db.internal", true},
		{"${_A1:-x}", "x", true},
		{"${INJECT}", "x\nlog: {level: debug}", true},
	} {
		got, changed, err := expand(c.text, Environment)
		if got != c.want || changed != c.changed || err != nil {
			t.Errorf("expand(%q) = %q, %v, %v; want %q, %v", c.text, got, changed, err, c.want, c.changed)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"${NOWHERE}":         "variable NOWHERE is not set",
		"a ${HOST} ${GONE}":  "variable GONE is not set",
		"${":                 errVariable.Error(),
		"${}":                errVariable.Error(),
		"${:-x}":             errVariable.Error(),
		"${HOST":             errVariable.Error(),
		"${1A}":              errVariable.Error(),
		"${A-B}":             errVariable.Error(),
		"${A B}":             errVariable.Error(),
		"${A:?needed}":       errVariable.Error(),
		"${ÄRGER:-x}":        errVariable.Error(),
		"${A:-${B}":          "", // the default is "${B"
		"$${A}${":            errVariable.Error(),
		"${EMPTY}${NOWHERE}": "variable NOWHERE is not set",
	} {
		_, _, err := expand(text, Environment)
		if got := ErrorText(err); got != want {
			t.Errorf("expand(%q): %q, want %q", text, got, want)
		}
	}
	if _, _, err := expand("${HOME}", nil); ErrorText(err) != "variable HOME is not set" {
		t.Errorf("without an Environment: %v", err)
	}
}
