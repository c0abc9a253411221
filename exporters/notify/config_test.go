package notify

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// problems is a configuration file that notes its problems.
type problems map[string]string

func (p problems) Report(path, message, _ string) { p[path] = message }
func (p problems) IsSet(string) bool              { return false }
func (p problems) Quote(_, value string) string   { return strconv.Quote(value) }
func (p problems) of(s spec.Section) (keys []string) {
	s.Validate(spec.NewCheck(p, "", "notify"))
	return slices.Sorted(maps.Keys(p))
}

// TestProblemsOfTargets: each key of a target that cannot work is named, and none of one that can.
func TestProblemsOfTargets(t *testing.T) {
	url := spec.NewSecret("https://hooks.example/x")
	with := func(change func(*Rules)) Rules {
		r := defaults()
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		section spec.Section
		want    []string
	}{
		"webhook":                {&Webhook{URL: url, Rules: defaults()}, nil},
		"webhook over http":      {&Webhook{URL: spec.NewSecret("http://127.0.0.1:1/x"), Rules: defaults()}, nil},
		"webhook to a file":      {&Webhook{URL: spec.NewSecret("file:///etc/passwd"), Rules: defaults()}, []string{"url"}},
		"webhook to nothing":     {&Webhook{Rules: defaults()}, []string{"url"}},
		"webhook with a header":  {&Webhook{URL: url, Headers: spec.Headers{"bad name": spec.NewSecret("x")}, Rules: defaults()}, []string{`headers."bad name"`}},
		"slack to nothing":       {&Slack{Rules: defaults()}, []string{"url"}},
		"pagerduty":              {&PagerDuty{RoutingKey: spec.NewSecret("k"), URL: pagerDutyURL, Rules: defaults()}, nil},
		"pagerduty without keys": {&PagerDuty{Rules: defaults()}, []string{"routing_key", "url"}},
		"alertmanager":           {&Alertmanager{URL: "ftp://x", Headers: spec.Headers{"bad name": spec.NewSecret("x")}}, []string{`headers."bad name"`, "rules.max_per_hour", "rules.timeout", "url"}},
		"command":                {&Command{Args: []string{"notify-send"}, Rules: defaults()}, nil},
		"no command":             {&Command{Args: []string{""}, Rules: defaults()}, []string{"args"}},
		"slack":                  {&Slack{URL: url, Rules: with(func(r *Rules) { r.MaxPerHour = 0 })}, []string{"rules.max_per_hour"}},
		"pagerduty's rules":      {&PagerDuty{RoutingKey: spec.NewSecret("k"), URL: pagerDutyURL, Rules: with(func(r *Rules) { r.MaxPerHour = 0 })}, []string{"rules.max_per_hour"}},
		"command's rules":        {&Command{Args: []string{"notify-send"}, Rules: with(func(r *Rules) { r.MaxPerHour = 0 })}, []string{"rules.max_per_hour"}},
		"no time":                {&Webhook{URL: url, Rules: with(func(r *Rules) { r.Timeout = 0 })}, []string{"rules.timeout"}},
		"none an hour":           {&Webhook{URL: url, Rules: with(func(r *Rules) { r.MaxPerHour = 0 })}, []string{"rules.max_per_hour"}},
		"one an hour":            {&Webhook{URL: url, Rules: with(func(r *Rules) { r.MaxPerHour, r.Timeout = 1, spec.Duration(time.Nanosecond) })}, nil},
		"no verdict":             {&Webhook{URL: url, Rules: with(func(r *Rules) { r.Verdicts = []string{"zombie", "undead"} })}, []string{"rules.verdicts[1]"}},
		"no patterns": {&Webhook{URL: url, Rules: with(func(r *Rules) { r.SilenceAgents, r.SilenceTools = []string{"ok", "["}, []string{"["} })},
			[]string{"rules.silence_agents[1]", "rules.silence_tools[0]"}},
		"no time of the day": {&Webhook{URL: url, Rules: with(func(r *Rules) { r.QuietHours = "22-7" })}, []string{"rules.quiet_hours"}},
		"a link to a script": {&Webhook{URL: url, Rules: with(func(r *Rules) { r.Link = "javascript:alert(1)" })}, []string{"rules.link"}},
		"a link":             {&Webhook{URL: url, Rules: with(func(r *Rules) { r.Link = "https://x.example/{session}" })}, nil},
	} {
		if d := cmp.Diff(c.want, make(problems).of(c.section)); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

// TestExamples: the example of a target shows every key, and the first one every rule.
func TestExamples(t *testing.T) {
	for i, typ := range Types() {
		s := typ.New()
		typ.Example.On(s)
		shown := reflect.ValueOf(s).Elem()
		if i == 0 {
			rules := shown.FieldByName("Rules")
			for k := range rules.NumField() {
				if rules.Field(k).IsZero() {
					t.Errorf("%s does not show %s", typ.Name, rules.Type().Field(k).Name)
				}
			}
		}
		for k := range shown.NumField() {
			if shown.Field(k).IsZero() {
				t.Errorf("%s does not show %s", typ.Name, shown.Type().Field(k).Name)
			}
		}
	}
}
