package msg

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTextUnquotes(t *testing.T) {
	for body, want := range map[string]string{
		`plain`:              "plain",
		`a\n\t\r\b\f\"\\\/z`: "a\n\t\r\b\f\"\\/z",
		`\u00e4\ud83d\ude00`: "ä😀",
		`\ud800 \ud800A`:     "\uFFFD \uFFFDA",
		``:                   "",
	} {
		if got := Quoted([]byte(body)).String(); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
		if got := Quoted([]byte(body)).Len(); got != len(want) {
			t.Errorf("%s: length %d, want %d", body, got, len(want))
		}
		if got := string(Quoted([]byte(body)).Append([]byte("x"))); got != "x"+want {
			t.Errorf("%s: appended %q", body, got)
		}
	}
}

func FuzzTextLikeEncodingJSON(f *testing.F) {
	f.Add(`a\u00e4\ud800\n`)
	f.Fuzz(func(t *testing.T, body string) {
		got := Quoted([]byte(body)).String()
		if n := Quoted([]byte(body)).Len(); n != len(got) {
			t.Errorf("%q: length %d of %q", body, n, got)
		}
		var want string
		if json.Unmarshal([]byte(`"`+body+`"`), &want) == nil && strings.ToValidUTF8(body, "") == body && got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	})
}

// The ids are stored for ever: a change of their making is a new database.
func TestIDsNeverChange(t *testing.T) {
	for got, want := range map[string]string{
		NewID("default", "legion", "s", "k").String():                    "9d867cd4c0812e075b6b30f2eb447150",
		NewTraceID("default", "legion", "s", "r").String():               "c15d6822d3597fcbd2d0ca6b821115e1",
		NewSpanID("default", "legion", "s", SpanTool, "c").String():      "323e720c3a331108",
		NewDeadLetterID("default", "src", "decode", "/f", "12").String(): "004922b88a3987c191a16a6a2608bdef",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if NewID("a", "b", "c", "d") == NewID("a", "bc", "", "d") {
		t.Error("parts run into each other")
	}
}

func TestFoldKeepsPlaceAndMostComplete(t *testing.T) {
	m := func(key, text string, c Completeness) Message {
		return Message{Session: "s", Key: key, Content: Plain(text), Complete: c}
	}
	out := Fold([]Message{m("a", "a1", Partial), m("b", "b1", Complete), m("a", "a2", Partial), m("a", "a3", Summary), m("b", "b2", Complete), m("a", "a4", Partial), m("a", "a5", Complete), m("a", "a6", Complete)})
	if len(out) != 2 || out[0].Content.String() != "a5" || out[1].Content.String() != "b1" {
		t.Errorf("%+v", out)
	}
}

func TestValidateNamesTheRule(t *testing.T) {
	ok := Message{Key: "k", Session: "s", Kind: ToolCall, Complete: Complete, Tool: Tool{CallID: "c", Name: "n"}}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Message){
		"without key":         func(m *Message) { m.Key = "" },
		"no session":          func(m *Message) { m.Session = "" },
		"negative time":       func(m *Message) { m.Time = -1 },
		"without a tool name": func(m *Message) { m.Tool.Name = "" },
		"without a call id":   func(m *Message) { m.Tool.CallID = "" },
		"tokens on a message": func(m *Message) { m.Usage.Input = 1 },
		"kind 99":             func(m *Message) { m.Kind = 99 },
	} {
		m := ok
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestTerms: names of tiers that are sold at the list price are none, and a cost of zero is none.
func TestTerms(t *testing.T) {
	for want, names := range map[string][]string{
		"": {"standard", "default", "auto", "", "not_available", "global", "on_demand", "normal"}, "flex": {"flex"}, "batch+us": {"batch", "standard", "us"},
		"fast": {"standard", "fast", "not_available"}, "priority": {"SERVICE_TIER_PRIORITY"},
	} {
		if got := Tier(names...); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	for digits, want := range map[string]uint64{"0.0125": 12_500_000_000, "1e-7": 100_000, "2": 2_000_000_000_000, "0": 0, "": 0, "-1": 0, "NaN": 0, "1e300": 0, "free": 0} {
		if got := Dollars(digits); got != want {
			t.Errorf("%q: %d, want %d", digits, got, want)
		}
	}
	a, b := Tokens{Input: 1, Tier: "flex", Stated: 3}, Tokens{Input: 2, Tier: "flex", Stated: 4}
	if sum := a.Add(b); sum.Tier != "flex" || sum.Stated != 7 {
		t.Errorf("%+v", sum)
	}
	if sum := (Tokens{}).Add(a); sum != a {
		t.Errorf("%+v", sum)
	}
	if sum := a.Add(Tokens{Input: 1}); sum.Tier != "" {
		t.Errorf("the tier of a sum of two is %q", sum.Tier)
	}
	if got := (Tokens{Input: 5}).Terms(a); got != (Tokens{Input: 5, Tier: "flex", Stated: 3}) {
		t.Errorf("%+v", got)
	}
}
