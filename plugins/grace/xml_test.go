package grace

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseActions(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string // name, then arguments
	}{
		"finish":            {"<finish><message>Done</message></finish>", []string{"finish", `{"message":"Done"}`}},
		"CDATA":             {"<write_code><path>a.py</path><content><![CDATA[if a < b: </content>\n  pass]]></content></write_code>", []string{"write_code", `{"path":"a.py","content":"if a < b: </content>\n  pass"}`}},
		"code as it is":     {"<write_code>\n <path>a.c</path>\n <content>a<b && c>d; &amp;</content>\n</write_code>", []string{"write_code", `{"path":"a.c","content":"a<b && c>d; &amp;"}`}},
		"several":           {"<actions>\n<read_file><path>a</path></read_file>\n<terminal_run><command>ls</command><args>-la</args></terminal_run></actions>", []string{"read_file", `{"path":"a"}`, "terminal_run", `{"command":"ls","args":"-la"}`}},
		"fenced":            {"```xml\n<browser><question>Who?</question></browser>\n```", []string{"browser", `{"question":"Who?"}`}},
		"JSON stays JSON":   {`<mcp_tool><name>berths</name><arguments>{"free": [1,2]}</arguments></mcp_tool>`, []string{"mcp_tool", `{"name":"berths","arguments":{"free": [1,2]}}`}},
		"nothing inside":    {"<finish/>", []string{"finish", `{}`}},
		"a bare text":       {"<finish>Done</finish>", []string{"finish", `{"text":"Done"}`}},
		"attributes":        {`<read_file id="1"><path>a</path></read_file>`, []string{"read_file", `{"path":"a"}`}},
		"CDATA without end": {"<finish><message><![CDATA[x</message></finish>", []string{"finish", `{"message":"x"}`}},
		"about XML":         {"<p>not an action</p>", nil},
		"words around it":   {"I will <finish><message>x</message></finish>", nil},
		"no end":            {"<finish><message>x", nil},
		"not a tag":         {"< finish>", nil},
		"empty":             {"", nil},
		"only a fence":      {"```", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range parseActions(c.in) {
				got = append(got, a.Name, a.Args)
				if !json.Valid([]byte(a.Args)) {
					t.Errorf("arguments are no JSON: %s", a.Args)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeepActionsAreCheap: a text is looked through once, however it is nested.
func TestDeepActionsAreCheap(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("<finish>", 1<<17), strings.Repeat("<![CDATA[", 1<<17), "<finish>" + strings.Repeat("<![CDATA[x", 1<<17) + "</finish>",
		"<finish>" + strings.Repeat("<a></a>", 1<<17) + "</finish>", strings.Repeat("<finish></finish>", 1<<17),
	} {
		if n := len(parseActions(s)); n > maxActions {
			t.Errorf("%d actions", n)
		}
	}
}

func FuzzActions(f *testing.F) {
	for _, s := range []string{"<finish><message>x</message></finish>", "<actions><read_file><path><![CDATA[a]]></path></read_file></actions>", "```xml\n<finish/>\n```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, a := range parseActions(s) {
			if !json.Valid([]byte(a.Args)) {
				t.Errorf("arguments are no JSON: %s", a.Args)
			}
		}
	})
}
