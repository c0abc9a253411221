package notify

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/verdict"
)

// Rules are which verdicts are sent, and when.
type Rules struct {
	// Verdicts to notify of, alerts of budgets, and change; see docs/verdicts.md, who.md and changes.md. By default
	// all but healthy, waiting_permission and waiting_person.
	Verdicts []string `yaml:"verdicts"`
	// Agents that are silenced, by name; * is any text.
	SilenceAgents []string `yaml:"silence_agents"`
	// Tools that are silenced, likewise.
	SilenceTools []string `yaml:"silence_tools"`
	// Local time from-to in which nothing is sent. A verdict that still holds afterwards is sent then.
	QuietHours string `yaml:"quiet_hours"`
	// Most notifications in an hour. The next one has the number of the dropped; those that are
	// resolved do not count.
	MaxPerHour int `yaml:"max_per_hour"`
	// Address of a conversation for people: {session} and {trace} are replaced.
	Link string `yaml:"link"`
	// How long one notification may take before it is tried again.
	Timeout spec.Duration `yaml:"timeout"`
}

func defaults() Rules {
	return Rules{MaxPerHour: 30, Timeout: spec.Duration(10 * time.Second)}
}

// faults are the verdicts of which a target is notified that names none.
func faults() []string {
	return slices.DeleteFunc(names(), func(n string) bool { return strings.HasPrefix(n, "waiting_") })
}

// names are the verdicts and alerts that can be sent.
func names() []string {
	return slices.Concat(verdict.Names()[1:], attribution.AlertNames(), []string{msg.AlertOfChange})
}

func (r *Rules) validate(c *spec.Check) {
	for i, name := range r.Verdicts {
		c.OneOf(spec.Index("verdicts", i), name, names()...)
	}
	for key, list := range map[string][]string{"silence_agents": r.SilenceAgents, "silence_tools": r.SilenceTools} {
		for i, p := range list {
			if _, err := path.Match(p, ""); err != nil {
				c.Report(spec.Index(key, i), "is no pattern", "")
			}
		}
	}
	if _, err := parseQuiet(r.QuietHours); err != nil {
		c.Report("quiet_hours", "is no time of the day from-to", `"22:00-07:00"`)
	}
	if r.MaxPerHour < 1 {
		c.Report("max_per_hour", "must be 1 or more", "")
	}
	if r.Link != "" {
		c.URL("link", strings.NewReplacer("{session}", "s", "{trace}", "t").Replace(r.Link), "http", "https")
	}
	c.Positive("timeout", r.Timeout)
}

// quiet is a time of the day from-to, in minutes; equal ones are none.
type quiet struct{ from, to int }

func parseQuiet(s string) (q quiet, err error) {
	if s == "" {
		return q, nil
	}
	from, to, _ := strings.Cut(s, "-")
	if q.from, err = minutes(from); err == nil {
		q.to, err = minutes(to)
	}
	if err != nil {
		return q, fmt.Errorf("notify: quiet hours %q: want 22:00-07:00", s)
	}
	return q, nil
}

// minutes is a time of the day.
func minutes(s string) (int, error) {
	t, err := time.Parse("15:04", strings.TrimSpace(s))
	return t.Hour()*60 + t.Minute(), err
}

func (q quiet) at(t time.Time) bool {
	t = t.Local()
	m := t.Hour()*60 + t.Minute()
	if q.from <= q.to {
		return q.from <= m && m < q.to
	}
	return m >= q.from || m < q.to
}

// Webhook is the section exporters.webhook.
type Webhook struct {
	// URL to which each notification is posted as JSON; see docs/verdicts.md. Never printed.
	URL spec.Secret `yaml:"url"`
	// Headers of every request. The values are never printed.
	Headers spec.Headers `yaml:"headers"`
	// Which verdicts are sent, and when.
	Rules Rules `yaml:"rules"`
}

// Slack is the section exporters.slack.
type Slack struct {
	// URL of an incoming webhook. Never printed.
	URL spec.Secret `yaml:"url"`
	// Which verdicts are sent, and when.
	Rules Rules `yaml:"rules"`
}

// Alertmanager is the section exporters.alertmanager.
type Alertmanager struct {
	// URL of Alertmanager, without /api.
	URL string `yaml:"url"`
	// Headers of every request. The values are never printed.
	Headers spec.Headers `yaml:"headers"`
	// Which verdicts are sent, and when.
	Rules Rules `yaml:"rules"`
}

// PagerDuty is the section exporters.pagerduty.
type PagerDuty struct {
	// Integration key of a service, of Events API v2. Never printed.
	RoutingKey spec.Secret `yaml:"routing_key"`
	// URL of the Events API: the one of the EU region is https://events.eu.pagerduty.com/v2/enqueue.
	URL string `yaml:"url"`
	// Which verdicts are sent, and when.
	Rules Rules `yaml:"rules"`
}

// Command is the section exporters.command.
type Command struct {
	// The program and its arguments. It runs without a shell, with a notification as JSON on its
	// standard input; another exit code than 0 has it run again.
	Args []string `yaml:"args"`
	// Which verdicts are sent, and when.
	Rules Rules `yaml:"rules"`
}

// Types are the targets.
func Types() []spec.Type {
	rules := func(r *Rules) { // the example has them once
		r.Verdicts, r.SilenceAgents, r.SilenceTools, r.QuietHours, r.Link = []string{"tool_running", "zombie", "waiting_permission"}, []string{"nightly-*"}, []string{"Sleep"}, "22:00-07:00", "http://127.0.0.1:9465/session/{session}"
	}
	return []spec.Type{
		{
			Name: "webhook", Doc: "Notifications of verdicts on work that hangs, of budgets and of changes, as JSON to a URL. Leave it out for none.",
			New: func() spec.Section { return &Webhook{Rules: defaults()} },
			Example: spec.Example{On: func(s spec.Section) {
				c := s.(*Webhook)
				c.URL, c.Headers = spec.NewSecret("https://hooks.internal/earshot"), spec.ExampleHeaders()
				rules(&c.Rules)
			}},
		},
		{
			Name: "slack", Doc: "The same as messages in Slack.",
			New: func() spec.Section { return &Slack{Rules: defaults()} },
			Example: spec.Example{On: func(s spec.Section) {
				c := s.(*Slack)
				c.URL = spec.NewSecret("${SLACK_WEBHOOK_URL:-https://hooks.slack.com/services/T0/B0/x}")
			}},
		},
		{
			Name: "alertmanager", Doc: "The same as alerts in Alertmanager.",
			New: func() spec.Section { return &Alertmanager{Rules: defaults()} },
			Example: spec.Example{On: func(s spec.Section) {
				c := s.(*Alertmanager)
				c.URL, c.Headers = "http://alertmanager.internal:9093", spec.ExampleHeaders()
			}},
		},
		{
			Name: "pagerduty", Doc: "The same as incidents in PagerDuty, by its Events API v2.",
			New: func() spec.Section { return &PagerDuty{URL: pagerDutyURL, Rules: defaults()} },
			Example: spec.Example{On: func(s spec.Section) {
				c := s.(*PagerDuty)
				c.RoutingKey = spec.NewSecret("${PAGERDUTY_ROUTING_KEY:-00000000000000000000000000000000}")
			}},
		},
		{
			Name: "command", Doc: "The same to a program of yours.",
			New: func() spec.Section { return &Command{Rules: defaults()} },
			Example: spec.Example{On: func(s spec.Section) {
				c := s.(*Command)
				c.Args = []string{"/usr/local/bin/page", "--urgent"}
			}},
		},
	}
}

const pagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// Validate implements spec.Section.
func (c *Webhook) Validate(check *spec.Check) {
	secretURL(check, c.URL)
	check.Headers("headers", c.Headers)
	c.Rules.validate(check.In("rules"))
}

// secretURL checks a URL that is not to be printed.
func secretURL(check *spec.Check, url spec.Secret) {
	if s := url.Reveal(); check.Required("url", s) && !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
		check.Report("url", "is no URL that begins with https:// or http://", "")
	}
}

// Validate implements spec.Section.
func (c *Slack) Validate(check *spec.Check) {
	secretURL(check, c.URL)
	c.Rules.validate(check.In("rules"))
}

// Validate implements spec.Section.
func (c *Alertmanager) Validate(check *spec.Check) {
	check.URL("url", c.URL, "http", "https")
	check.Headers("headers", c.Headers)
	c.Rules.validate(check.In("rules"))
}

// Validate implements spec.Section.
func (c *PagerDuty) Validate(check *spec.Check) {
	check.Required("routing_key", c.RoutingKey.Reveal())
	check.URL("url", c.URL, "http", "https")
	c.Rules.validate(check.In("rules"))
}

// Validate implements spec.Section.
func (c *Command) Validate(check *spec.Check) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		check.Report("args", "names no program", "")
	}
	c.Rules.validate(check.In("rules"))
}

// NewExporter implements export.Config.
func (c *Webhook) NewExporter(_ context.Context, env export.Env) (export.Exporter, error) {
	return open("webhook", c.Rules, &webhook{newPoster(c.URL.Reveal(), c.Headers.Reveal())}, env)
}

// NewExporter implements export.Config.
func (c *Slack) NewExporter(_ context.Context, env export.Env) (export.Exporter, error) {
	return open("slack", c.Rules, &slack{newPoster(c.URL.Reveal(), nil)}, env)
}

// NewExporter implements export.Config.
func (c *Alertmanager) NewExporter(_ context.Context, env export.Env) (export.Exporter, error) {
	return open("alertmanager", c.Rules, &alertmanager{newPoster(strings.TrimSuffix(c.URL, "/")+"/api/v2/alerts", c.Headers.Reveal())}, env)
}

// NewExporter implements export.Config.
func (c *PagerDuty) NewExporter(_ context.Context, env export.Env) (export.Exporter, error) {
	return open("pagerduty", c.Rules, &pagerDuty{newPoster(c.URL, nil), c.RoutingKey.Reveal()}, env)
}

// NewExporter implements export.Config.
func (c *Command) NewExporter(_ context.Context, env export.Env) (export.Exporter, error) {
	return open("command", c.Rules, &command{c.Args}, env)
}
