package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/retry"
)

// poster posts JSON.
type poster struct {
	url     string
	headers map[string]string
	client  *http.Client
}

func newPoster(url string, headers map[string]string) poster {
	return poster{url, headers, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// post classifies the answer as export.Exporter requires. Its error never has the URL: the one
// of a webhook is a secret.
func (p *poster) post(ctx context.Context, key string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return export.Permanent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(b))
	if err != nil {
		return export.Permanent(fmt.Errorf("request: %w", hidden(err)))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "earshot")
	r.Header.Set("Idempotency-Key", key)
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	res, err := p.client.Do(r)
	if err != nil {
		return hidden(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 300)) // for a person only
	if res.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("HTTP %s: %s", res.Status, clip(string(answer), 200))
	switch {
	case res.StatusCode == http.StatusRequestTimeout || res.StatusCode == http.StatusTooEarly || res.StatusCode == http.StatusTooManyRequests || res.StatusCode/100 == 5:
		if wait := retry.ParseAfter(res.Header.Get("Retry-After"), time.Now()); wait > 0 {
			return &export.RetryAfter{Err: err, Wait: wait}
		}
		return err
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusNotFound || res.StatusCode/100 == 3: // the configuration can be mended
		return err
	}
	return export.Permanent(err)
}

// hidden is an error without the URL.
func hidden(err error) error {
	if u, ok := err.(*url.Error); ok {
		return u.Err
	}
	return err
}

func escapePath(s string) string { return url.PathEscape(s) }

// webhook posts a Notification.
type webhook struct{ poster }

func (w *webhook) send(ctx context.Context, n *Notification) error {
	return w.post(ctx, n.Key+"-"+n.Status, n)
}

// slack posts a message of blocks to an incoming webhook
// (https://api.slack.com/messaging/webhooks, https://api.slack.com/reference/block-kit/blocks).
type slack struct{ poster }

// Limits of Slack: blocks of a message, characters of a section.
const (
	slackAlerts  = 10
	slackSection = 3000
)

// slackEscape escapes a text for mrkdwn: the three characters that can make a link, a mention
// or a broadcast, and those that format. An underscore inside a word, as in the names of tools, does not.
func slackEscape(s string) string {
	runes := []rune(s)
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i, r := range runes {
		if r == '_' && !(inWord(i-1) && inWord(i+1)) {
			runes[i] = '＿'
		}
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "*", "∗", "~", "∼", "`", "ˋ").Replace(string(runes))
}

func (w *slack) send(ctx context.Context, n *Notification) error {
	// Without verbatim Slack makes links of addresses and channels, and mentions, of a text that has no marks for them.
	text := func(s string) map[string]any {
		return map[string]any{"type": "mrkdwn", "verbatim": true, "text": clip(s, slackSection)}
	}
	var blocks []any
	for i, a := range n.Alerts {
		if i == slackAlerts {
			blocks = append(blocks, map[string]any{"type": "context", "elements": []any{text(fmt.Sprintf("and %d more", len(n.Alerts)-i))}})
			break
		}
		icon := map[string]string{"critical": ":red_circle:", "warning": ":large_orange_circle:", "info": ":large_blue_circle:"}[a.Severity]
		if n.Status == "resolved" {
			icon = ":white_check_mark: resolved (" + slackEscape(clip(cmp.Or(a.Why, "over"), 100)) + "):"
		}
		blocks = append(blocks, map[string]any{"type": "section", "text": text(icon + " *" + a.Verdict + "* " + slackEscape(clip(a.Evidence, 1000)))})
		context := []any{text(slackEscape(clip(a.Path, 1000)))}
		if a.Advice != "" && n.Status == "firing" {
			context = append(context, text(a.Advice))
		}
		if a.LastWords != "" && n.Status == "firing" {
			context = append(context, text("last words: "+slackEscape(a.LastWords)))
		}
		blocks = append(blocks, map[string]any{"type": "context", "elements": context})
	}
	if n.Link != "" {
		link := strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace(n.Link)
		blocks = append(blocks, map[string]any{"type": "section", "text": text("<" + link + "|Open the conversation>")})
	}
	if n.Withheld > 0 {
		blocks = append(blocks, map[string]any{"type": "context", "elements": []any{text(fmt.Sprintf("%d notifications were not sent: the limit of an hour was reached", n.Withheld))}})
	}
	return w.post(ctx, n.Key+"-"+n.Status, map[string]any{"text": slackEscape(clip(n.summary(), 1000)), "blocks": blocks})
}

// alertmanager posts alerts to the API v2 of Alertmanager
// (https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml).
type alertmanager struct{ poster }

// alertLasts is when a firing alert ends unless it is resolved before: without an end
// Alertmanager resolves it after five minutes.
const alertLasts = 24 * time.Hour

func (w *alertmanager) send(ctx context.Context, n *Notification) error {
	var list []map[string]any
	for _, a := range n.Alerts {
		labels := map[string]string{
			"alertname": "EarshotVerdict", "verdict": a.Verdict, "severity": a.Severity, "agent": a.Agent, "tool": a.Tool, "source": a.Source, "format": a.Format,
			"tenant": a.Tenant, "session": n.Session, "span_id": a.SpanID, "key": a.Key,
		}
		for name, value := range labels {
			if labels[name] = clip(value, 200); value == "" {
				delete(labels, name)
			}
		}
		alert := map[string]any{
			"labels": labels, "annotations": map[string]string{"summary": clip(a.Evidence, 1000), "description": clip(a.Path, 1000), "advice": a.Advice, "last_words": a.LastWords},
			"startsAt": a.Since.Format(time.RFC3339Nano), "endsAt": n.At.Add(alertLasts).Format(time.RFC3339Nano),
		}
		if a.Resolved != nil {
			alert["endsAt"] = a.Resolved.Format(time.RFC3339Nano)
		}
		if n.Link != "" {
			alert["generatorURL"] = n.Link
		}
		list = append(list, alert)
	}
	return w.post(ctx, n.Key+"-"+n.Status, list)
}

// pagerDuty posts events of the Events API v2
// (https://developer.pagerduty.com/docs/events-api-v2/trigger-events/).
type pagerDuty struct {
	poster
	key string
}

func (w *pagerDuty) send(ctx context.Context, n *Notification) error {
	for _, a := range n.Alerts {
		event := map[string]any{"routing_key": w.key, "dedup_key": a.Key, "event_action": "trigger"}
		if n.Status == "resolved" {
			event["event_action"] = "resolve"
		} else {
			event["client"] = "Earshot"
			event["payload"] = map[string]any{
				"summary": clip(a.Verdict+": "+a.Evidence, 1024), "source": clip(a.Source, 255), "severity": a.Severity, "timestamp": a.Since.Format(time.RFC3339Nano),
				"component": clip(a.Agent, 255), "group": clip(n.Session, 255), "class": a.Verdict,
				"custom_details": map[string]any{"path": clip(a.Path, 1000), "advice": a.Advice, "last_words": a.LastWords, "tool": a.Tool, "format": a.Format, "trace_id": a.TraceID, "withheld": n.Withheld},
			}
			if n.Link != "" {
				event["links"] = []any{map[string]string{"href": n.Link, "text": "The conversation"}}
			}
		}
		if err := w.post(ctx, a.Key+"-"+n.Status, event); err != nil {
			return err // those before it are recognized by their keys when it is tried again
		}
	}
	return nil
}

// command runs a program, without a shell, with a Notification on its standard input. Nothing of
// the traffic is in its arguments.
type command struct{ args []string }

func (w *command) send(ctx context.Context, n *Notification) error {
	b, err := json.Marshal(n)
	if err != nil {
		return export.Permanent(err)
	}
	cmd := exec.CommandContext(ctx, w.args[0], w.args[1:]...)
	cmd.Stdin = bytes.NewReader(b)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &limited{to: &stderr, left: 4096}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", w.args[0], err, clip(stderr.String(), 300))
	}
	return nil
}

// limited keeps the beginning of an output.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.to.Write(b[:n])
	l.left -= n
	return len(b), nil
}
