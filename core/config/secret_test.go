package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source/push"
	"github.com/earshot-dev/earshot/core/internal/source/sse"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
	"github.com/earshot-dev/earshot/exporters/otel"
)

const password = "hunter2-p4ssw0rd"

// traces are the shapes in which a printed secret would still be one.
func traces() []string {
	return []string{password, fmt.Sprintf("%x", password), fmt.Sprintf("%X", password), fmt.Sprintf("% x", password), fmt.Sprint([]byte(password))}
}

func mustNotTell(t *testing.T, how, text string) {
	t.Helper()
	for _, trace := range traces() {
		if strings.Contains(text, trace) {
			t.Errorf("%s tells the secret: %s", how, text)
		}
	}
}

// TestSecretNeverPrints prints a secret, alone and inside of everything that a
// program would put it in, with every verb and flag that fmt knows of and others.
func TestSecretNeverPrints(t *testing.T) {
	s := spec.NewSecret(password)
	type hidden struct{ secret spec.Secret }
	type nested struct {
		Secret  spec.Secret
		Pointer *spec.Secret
		hidden  hidden
		config  config.Config
	}
	c := config.Default()
	c.Exporters.Sections = map[string]spec.Section{
		"clickhouse": &clickhouse.Config{DSN: spec.NewSecret("clickhouse://u:" + password + "@h/d")},
		"otlp":       &otel.Config{Headers: spec.Headers{"Authorization": s}},
	}
	c.Redact.HashSalt = s
	c.Sources = []config.Source{{Type: "http", Section: &push.Config{Token: s}}, {Type: "sse", Section: &sse.Config{Headers: spec.Headers{"A": s}}}}
	values := map[string]any{
		"secret": s, "pointer": &s, "slice": []spec.Secret{s}, "array": [1]spec.Secret{s}, "map": map[string]spec.Secret{"k": s},
		"key": map[spec.Secret]int{s: 1}, "any": []any{s}, "hidden": hidden{s}, "pointer to hidden": &hidden{s},
		"nested": nested{Secret: s, Pointer: &s, hidden: hidden{s}, config: *c}, "config": c, "config value": *c,
		"source": c.Sources[0], "clickhouse": c.Exporters.Sections, "error": fmt.Errorf("dial: %w: %v", errors.New("refused"), s),
	}
	for name, v := range values {
		for verb := rune('A'); verb <= 'z'; verb++ {
			for _, flags := range []string{"", "+", "#", "-", " ", "0", "+#", "20", ".40", "# "} {
				format := "%" + flags + string(verb)
				mustNotTell(t, name+" with "+format, fmt.Sprintf(format, v))
			}
		}
		mustNotTell(t, name+" with Sprint", fmt.Sprint(v)+fmt.Sprintln(v))
		if text, err := yaml.Marshal(v); err == nil {
			mustNotTell(t, name+" as YAML", string(text))
		}
		if text, err := json.Marshal(v); err == nil {
			mustNotTell(t, name+" as JSON", string(text))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", name, v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", name, v)
		mustNotTell(t, name+" in a log", log.String())
	}
}

func TestSecretPrintsThatItIsThere(t *testing.T) {
	s, none := spec.NewSecret(password), spec.Secret{}
	for format, want := range map[string]string{
		"%v": "[redacted]|", "%+v": "[redacted]|", "%s": "[redacted]|", "%q": `"[redacted]"|""`, "%#v": `"[redacted]"|""`, "%d": "[redacted]|",
	} {
		if got := fmt.Sprintf(format+"|"+format, s, none); got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
	}
	text, err := json.Marshal(map[string]spec.Secret{"a": s, "b": none})
	if got := string(text); err != nil || got != `{"a":"[redacted]","b":""}` {
		t.Errorf("JSON: %s, %v", got, err)
	}
	if s.Reveal() != password || none.Reveal() != "" {
		t.Error("Reveal does not give the text")
	}
	if !s.Equal(spec.NewSecret(password)) || s.Equal(none) {
		t.Error("Equal does not compare the texts")
	}
}

// TestProblemsDoNotTell makes every value of a file that may be secret wrong, in
// the file and by variable.
func TestProblemsDoNotTell(t *testing.T) {
	env := func(name string) (string, bool) { return password, name == "SECRET" }
	for _, secret := range []string{password, "${SECRET}"} {
		for _, file := range []string{
			"exporters: {clickhouse: {dsn: %q}}",
			"exporters: {clickhouse: {dsn: 'mysql://u:%s@h'}}",
			"exporters: {clickhouse: {dsn: 'clickhouse://u:%s@h:port/d'}}",
			"exporters: {clickhouse: {dsn: 'clickhouse://u:a#%s@h:9000/d'}}",
			"exporters: {clickhouse: {dsn: 'clickhouse://u:%%zz%s@h:9000/d'}}",
			"exporters: {clickhouse: {dsn: '${%s'}}",
			"exporters: {clickhouse: {dsn: '${%s}'}}",
			"exporters: {otlp: {endpoint: 'http://u:%s@h'}}",
			"exporters: {otlp: {endpoint: 'http://u:%s@h:port'}}",
			"exporters: {otlp: {endpoint: 'h', headers: {A: \"%s\\n\"}}}",
			"sources: [{type: http, token: 'a %s'}]",
			"sources: [{type: sse, headers: {'x y': '%s'}}]",
			"redact: {hash_salt: ['%s']}",
		} {
			_, err := types.Parse("f", []byte(strings.ReplaceAll(strings.ReplaceAll(file, "%q", "'"+secret+"'"), "%s", secret)), env)
			if err == nil {
				t.Errorf("%s: passed", file)
				continue
			}
			mustNotTell(t, file, err.Error())
		}
	}
}
