package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source/file"
	"github.com/earshot-dev/earshot/core/internal/source/poll"
	"github.com/earshot-dev/earshot/core/internal/source/push"
	"github.com/earshot-dev/earshot/core/internal/source/sse"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/source/websocket"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
	"github.com/earshot-dev/earshot/exporters/otel"
)

// ignorePositions compares values, not their places in the file.
var ignorePositions = cmpopts.IgnoreUnexported(config.Config{})

func mustParse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := types.Parse("earshot.yaml", []byte(text), config.Environment)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func TestSmallestFile(t *testing.T) {
	c := mustParse(t, `
sources:
  - {name: legion, type: file, format: legion, paths: ["sessions/*/messages.jsonl"]}
`)
	want := config.Default()
	want.Sources = []config.Source{{
		Name: "legion", Type: "file", Format: "legion", Tenant: "default", Privacy: config.Privacy{Personal: "keep", Content: "full"},
		Section: &file.Config{
			Paths: []string{"sessions/*/messages.jsonl"}, StartAt: string(file.Beginning),
			MaxLine: 64 << 20, PollInterval: spec.Duration(5 * time.Second),
		},
	}}
	if diff := cmp.Diff(want, c, ignorePositions); diff != "" {
		t.Error(diff)
	}
}

func TestEveryTypeOfSource(t *testing.T) {
	c := mustParse(t, `
sources:
  - {name: a, type: tap, listen: "127.0.0.1:7801", upstream: "https://h:7777/api", upstream_tls: {insecure_skip_verify: true},
     routes: [{path: "/v1/**", format: anthropic-sse}, {content_type: "text/event-stream", host: h, format: agno}]}
  - {name: b, type: sse, format: letta, url: "https://h/stream", method: POST, body: "{}", resume: auto,
     headers: {Authorization: "Bearer ${PASSWORD}", X-Team: 7}}
  - {name: c, type: websocket, format: manus, url: "wss://h", subprotocols: [v1, v2], send: ["hello"]}
  - {name: d, type: http, format: grace, listen: "[::1]:7802", path: /push, token: abc, max_body: 1MiB,
     tls: {cert_file: ~/c.pem, key_file: ~/k.pem}}
  - {name: e, type: poll, format: agno, url: "http://h/runs", interval: 1m, pages: auto, tenant: acme}
`)
	secret := func(s string) spec.Secret { return spec.NewSecret(s) }
	want := []config.Source{
		{Name: "a", Type: "tap", Tenant: "default", Section: &tap.Config{
			Listen: "127.0.0.1:7801", Upstream: "https://h:7777/api", UpstreamTLS: &spec.ClientTLS{InsecureSkipVerify: true}, MaxBody: 64 << 20,
			Routes: []tap.Route{{Path: "/v1/**", Format: "anthropic-sse"}, {ContentType: "text/event-stream", Host: "h", Format: "agno"}},
		}},
		{Name: "b", Type: "sse", Format: "letta", Tenant: "default", Section: &sse.Config{
			URL: "https://h/stream", Method: "POST", Body: "{}", Resume: "auto",
			Headers: spec.Headers{"Authorization": secret("Bearer sw0rdf1sh"), "X-Team": secret("7")},
		}},
		{Name: "c", Type: "websocket", Format: "manus", Tenant: "default", Section: &websocket.Config{
			URL: "wss://h", Subprotocols: []string{"v1", "v2"}, Send: []string{"hello"},
		}},
		{Name: "d", Type: "http", Format: "grace", Tenant: "default", Section: &push.Config{
			Listen: "[::1]:7802", Path: "/push", Token: secret("abc"), MaxBody: 1 << 20,
			TLS: &spec.ServerTLS{CertFile: "/home/ada/c.pem", KeyFile: "/home/ada/k.pem"},
		}},
		{Name: "e", Type: "poll", Format: "agno", Tenant: "acme", Section: &poll.Config{
			URL: "http://h/runs", Method: "GET", Interval: spec.Duration(time.Minute), Pages: "auto",
		}},
	}
	for i := range want {
		want[i].Privacy = config.Privacy{Personal: "keep", Content: "full"}
	}
	if diff := cmp.Diff(want, c.Sources); diff != "" {
		t.Error(diff)
	}
}

// TestPrivacyIsChecked has policies that cannot be kept.
func TestPrivacyIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"personal: hide": "personal", "personal: token": "redact.hash_salt", "content: some": "content", "kinds: [hat]": "kinds", `words: [""]`: "words", `patterns: [{name: a, regex: "("}]`: "regular expression",
	} {
		_, err := types.Parse("earshot.yaml", []byte("sources: [{name: a, type: file, format: legion, paths: [x], privacy: {"+text+"}}]\n"), config.Environment)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	c := mustParse(t, "redact: {hash_salt: x}\nsources: [{name: a, type: file, format: legion, paths: [x], privacy: {personal: token, content: metadata, kinds: [email]}}]\n")
	if p := c.Sources[0].Privacy; p.Personal != "token" || p.Content != "metadata" || len(p.Kinds) != 1 {
		t.Errorf("%+v", p)
	}
}

func otlp(c *config.Config) *otel.Config {
	x, _ := c.Exporters.Sections["otlp"].(*otel.Config)
	return x
}

// TestSeveralReceivers: exporters.otlp-NAME is another exporter of the type, and no other type has more.
func TestSeveralReceivers(t *testing.T) {
	c := mustParse(t, "exporters:\n  otlp: {endpoint: 'http://a:4317'}\n  otlp-b_2: {endpoint: 'http://b:4318', signals: [traces], sample: {share: 0.1, slow: 30s}}\n"+oneSource)
	b := c.Exporters.Sections["otlp-b_2"].(*otel.Config)
	if b.Protocol != "http" || b.Sample == nil || b.Sample.Share != 0.1 || !b.Sample.Errors || !b.Sample.Stuck || otlp(c).Sample != nil || len(otlp(c).Signals) != 3 {
		t.Errorf("%+v %+v", b, b.Sample)
	}
	if got := c.Exporters.Of(otel.Type()); !slices.Equal(got, []string{"otlp", "otlp-b_2"}) {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"otlp-: {endpoint: 'http://a'}": "unknown key", "otlp-A: {endpoint: 'http://a'}": "unknown key", "clickhouse-2: {dsn: 'clickhouse://h'}": "unknown key",
		"otlp-b: {endpoint: 'http://a', sample: {share: 2}}": "a share from 0 to 1", "otlp-b: {endpoint: 'http://a', signals: [logs]}": "logs need content",
		"otlp-b: {endpoint: 'http://a', signals: [spans]}": "expected traces, metrics or logs", "otlp-b: {endpoint: 'http://a', sample: {errors: false, stuck: false}}": "chooses nothing",
	} {
		if _, err := types.Parse("earshot.yaml", []byte("exporters: {"+text+"}\n"+oneSource), config.Environment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func files(c *config.Config) *file.Config { return c.Sources[0].Section.(*file.Config) }

const oneSource = "sources: [{name: a, type: file, format: legion, paths: [x]}]\n"

func TestVariablesHaveTheTypeOfTheirKey(t *testing.T) {
	c := mustParse(t, `
data_dir: ${NOWHERE:-/var}/earshot
delivery: {batch_rows: "${ROWS}", flush_interval: "${WAIT}"}
telemetry: {listen: ":${PORT}"}
redact: {builtin: "${NOWHERE:-false}"}
journal:
  max_size: ${NOWHERE:-1GiB}
exporters:
  otlp: {endpoint: "http://${HOST}:4317", content: "${ON}", headers: {a: "$$${ROWS}"}}
`+oneSource)
	if c.DataDir != "/var/earshot" || c.Delivery.BatchRows != 500 || c.Delivery.FlushInterval != spec.Duration(2*time.Second) ||
		c.Telemetry.Listen != ":7801" || c.Redact.Builtin || c.Journal.MaxSize != 1<<30 || !otlp(c).Content ||
		otlp(c).Headers["a"].Reveal() != "$500" {
		t.Errorf("%+v", c)
	}
}

func TestTextsAreTakenAsWritten(t *testing.T) {
	c := mustParse(t, `
exporters:
  otlp:
    endpoint: http://h
    resource: {a: 1.10, b: no, c: 007, d: true, e: 2026-01-02, f: 0x1F, g: "", h: 'null'}
`+oneSource)
	want := map[string]string{
		"a": "1.10", "b": "no", "c": "007", "d": "true", "e": "2026-01-02", "f": "0x1F", "g": "", "h": "null",
	}
	if diff := cmp.Diff(want, otlp(c).Resource); diff != "" {
		t.Error(diff)
	}
}

func TestOptionsAreCanonicalJSON(t *testing.T) {
	for options, want := range map[string]string{
		"":   "",
		"{}": "",
		"{b: 1, a: {d: [x, 2, true, null], c: -1.50}}":                           `{"a":{"c":-1.50,"d":["x",2,true,null]},"b":1}`,
		`{a: "1", b: '${ROWS}', e: "<&>"}`:                                       `{"a":"1","b":"500","e":"<&>"}`,
		"{a: 0x10, b: 1_000, c: 123456789012345678901234567890, d: 1e3, e: 0.1}": `{"a":16,"b":1000,"c":123456789012345678901234567890,"d":1e3,"e":0.1}`,
		"{a: 2026-01-02, b: yes, c: ~, d: True}":                                 `{"a":"2026-01-02","b":"yes","c":null,"d":true}`,
		"\n      a: !!str ${ROWS}\n      b: !!str 5":                             `{"a":"500","b":"5"}`,
		"{<<: {a: 1, b: 1}, b: 2}":                                               `{"a":1,"b":2}`,
		"{a: &x {y: 1}, b: *x}":                                                  `{"a":{"y":1},"b":{"y":1}}`,
		"\n      a: ${ROWS}\n      b: ${ON}\n      c: ${HOST}\n      d: x${ROWS}\n      e: ${EMPTY}\n      f: $$": `{"a":500,"b":true,"c":"db.internal","d":"x500","e":null,"f":"$"}`,
	} {
		c := mustParse(t, "sources:\n  - name: a\n    type: file\n    format: x\n    paths: [x]\n    options: "+options+"\n")
		if got := string(c.Sources[0].Options); got != want {
			t.Errorf("%s\n got %s\nwant %s", options, got, want)
		}
		if o := c.Sources[0].Options; o != nil && !json.Valid(o) {
			t.Errorf("%s: no JSON: %s", options, o)
		}
	}
}

func TestAnchorsAndMerges(t *testing.T) {
	c := mustParse(t, `
sources:
  - &base {name: a, type: file, format: legion, paths: [x], tenant: acme, max_line: &line 1MiB}
  - {<<: *base, name: b, paths: [y]}
  - {name: c, <<: [{tenant: first}, *base], max_line: *line}
`)
	for i, want := range []struct{ name, tenant, path string }{{"a", "acme", "x"}, {"b", "acme", "y"}, {"c", "first", "x"}} {
		s := c.Sources[i]
		if s.Name != want.name || s.Tenant != want.tenant || s.Section.(*file.Config).Paths[0] != want.path || s.Section.(*file.Config).MaxLine != 1<<20 {
			t.Errorf("source %d: %+v %+v", i, s, s.Section.(*file.Config))
		}
	}
}

func TestSectionsWithoutValueAreDefaults(t *testing.T) {
	c := mustParse(t, "store:\nexporters:\n  clickhouse:\n  otlp:\nplugins:\nredact: {keys: , patterns: }\n"+oneSource)
	want := config.Default()
	want.Sources = c.Sources
	if diff := cmp.Diff(want, c, ignorePositions); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultsThatDependOnOtherKeys(t *testing.T) {
	for _, c := range []struct{ exporters, database, protocol string }{
		{"clickhouse: {dsn: 'clickhouse://h:9000'}", "earshot", ""},
		{"clickhouse: {dsn: 'clickhouse://u:p%23@h1:9000,h2:9000/agents'}", "agents", ""},
		{"clickhouse: {dsn: 'http://h1:8123,h2:8123/agents?compress=lz4'}", "agents", ""},
		{"clickhouse: {dsn: 'https://h:8443/?secure=true&database=agents'}", "agents", ""},
		{"clickhouse: {dsn: 'clickhouse://h:9000', database: own}", "own", ""},
		{"clickhouse: {dsn: 'clickhouse://h:9000/own', database: own}", "own", ""},
		{"otlp: {endpoint: 'http://h:4317'}", "", "grpc"},
		{"otlp: {endpoint: 'http://h:4318'}", "", "http"},
		{"otlp: {endpoint: 'https://h'}", "", "http"},
		{"otlp: {endpoint: 'http://h:4317', protocol: http}", "", "http"},
	} {
		cfg := mustParse(t, "exporters: {"+c.exporters+"}\n"+oneSource)
		if x, ok := cfg.Exporters.Sections["clickhouse"].(*clickhouse.Config); ok != (c.database != "") || ok && x.Database != c.database {
			t.Errorf("%s: database %+v, want %q", c.exporters, x, c.database)
		}
		if x := otlp(cfg); (x != nil) != (c.protocol != "") || x != nil && x.Protocol != c.protocol {
			t.Errorf("%s: protocol %+v, want %q", c.exporters, x, c.protocol)
		}
	}
}

func TestHome(t *testing.T) {
	c := mustParse(t, `
data_dir: ~/data
plugin_dir: "~"
store: {binary: ~/bin/earshot-store}
prices: ~/prices.csv
plugins: {acme: {sandbox: {read: [~/modules], write: [~/cache]}}, loose: {sandbox: off}}
exporters: {otlp: {endpoint: "https://h", tls: {ca_file: ~/ca.pem}}}
sources:
  - {name: a, type: file, format: x, paths: [~/a, ~bob/b, ./~/c], exclude: [~/d]}
`)
	got := append([]string{c.DataDir, c.PluginDir, c.Store.Binary, c.Prices, otlp(c).TLS.CAFile}, files(c).Paths...)
	got = append(got, files(c).Exclude...)
	got = slices.Concat(got, c.Plugins["acme"].Sandbox.Read, c.Plugins["acme"].Sandbox.Write)
	want := []string{"/home/ada/data", "/home/ada", "/home/ada/bin/earshot-store", "/home/ada/prices.csv", "/home/ada/ca.pem", "/home/ada/a", "~bob/b", "./~/c", "/home/ada/d", "/home/ada/modules", "/home/ada/cache"}
	if acme, loose := c.Plugins["acme"], c.Plugins["loose"]; acme.Sandbox.Off || !loose.Sandbox.Off {
		t.Error("sandbox: off is of loose alone")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err := types.Parse("f", []byte("data_dir: ~/x\n"+oneSource), nil)
	if want := "f:1:11: data_dir: ~ has no meaning: HOME is not set"; config.ErrorText(err) != want {
		t.Errorf("without HOME: %v, want %s", err, want)
	}
}

// TestErrorComesWithTheRest: validate continues with the values that could be read.
func TestErrorComesWithTheRest(t *testing.T) {
	c, err := types.Parse("f", []byte("data_dir: [x]\nlog: {level: debug}\n"+oneSource), nil)
	var e *config.Error
	if !errors.As(err, &e) || len(e.Problems) != 1 {
		t.Fatalf("%v", err)
	}
	if c.DataDir != config.Default().DataDir || c.Log.Level != "debug" || len(c.Sources) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestProblemStandsWhereItsPathStands(t *testing.T) {
	c := mustParse(t, "data_dir: x\nsources:\n  - name: a\n    type: file\n    format: nope\n    paths: [x]\n    options: {a: {\"b.c\": [1, 2]}}\n")
	for path, want := range map[string]string{
		"sources[0].format":               "earshot.yaml:5:13: sources[0].format: m (h)",
		"sources[0].options.a.\"b.c\"[1]": "earshot.yaml:7:30: sources[0].options.a.\"b.c\"[1]: m (h)",
		"sources[0].options.a.missing":    "earshot.yaml:7:18: sources[0].options.a.missing: m (h)",
		"sources[0].tenant":               "earshot.yaml:3:5: sources[0].tenant: m (h)",
		"sources[7].tenant":               "earshot.yaml:3:3: sources[7].tenant: m (h)",
		"delivery.batch_rows":             "earshot.yaml:1:1: delivery.batch_rows: m (h)",
		"":                                "earshot.yaml:1:1: m (h)",
	} {
		if got := c.Problem(path, "m", "h").String(); got != want {
			t.Errorf("%s\n got %s\nwant %s", path, got, want)
		}
	}
	if got, want := config.Default().Problem("sources", "m", "").String(), ":1:1: sources: m"; got != want {
		t.Errorf("without a file: %s, want %s", got, want)
	}
}

func TestWhatIsNoText(t *testing.T) {
	const control = " has no place in a configuration (write it as an escape between double quotes)"
	for text, want := range map[string]string{
		"data_dir: a\x00b":            "f:1:12: the character U+0000" + control,
		"# ü\ndata_dir: ü\x07":        "f:2:12: the character U+0007" + control,
		"data_dir: a\x7f":             "f:1:12: the character U+007F" + control,
		"data_dir: a\u0085b":          "f:1:12: the character U+0085" + control,
		"data_dir: a\u2028b":          "f:1:12: the character U+2028" + control,
		"data_dir: a\rlog: {}\r\n":    "f:1:12: the character U+000D" + control,
		"data_dir: a\ufeff":           "f:1:12: the character U+FEFF" + control,
		"data_dir: x\ndata_dir: \xff": "f:2:11: byte 0xFF is not UTF-8 (save the file as UTF-8)",
		"\xff\xfed\x00a\x00":          "f:1:1: byte 0xFF is not UTF-8 (save the file as UTF-8)",
	} {
		if _, err := types.Parse("f", []byte(text), nil); config.ErrorText(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFilesOfOtherEditors(t *testing.T) {
	c := mustParse(t, "\ufeffdata_dir: x\r\nlog:\r\n  level: debug # ü\r\n"+oneSource)
	if c.DataDir != "x" || c.Log.Level != "debug" {
		t.Errorf("%+v", c)
	}
	_, err := types.Parse("f", []byte("\ufeffdata_dir: x\r\nlog:\r\n  lvel: debug\r\n"+oneSource), nil)
	if want := `f:3:3: log.lvel: unknown key (did you mean "level"?)`; config.ErrorText(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestLimits(t *testing.T) {
	problem := func(text string) string {
		_, err := types.Parse("f", []byte(text), nil)
		var e *config.Error
		if !errors.As(err, &e) {
			t.Fatalf("%.60s: %v", text, err)
		}
		return e.Problems[len(e.Problems)-1].Message
	}
	if got, want := problem(strings.Repeat("#", config.MaxFile+1)), "the file is larger than 1MiB"; got != want {
		t.Errorf("large file: %s", got)
	}
	if got := problem("data_dir: \"" + strings.Repeat("é ", 10_000)); got != "yaml: found unexpected end of stream" {
		t.Errorf("long line: %s", got)
	}
	// Every line is nine times the one before: 9^9 values in 200 bytes.
	bomb := "l0: &l0 x\n"
	for i, c := range "abcdefghi" {
		before := "l" + string("0abcdefgh"[i])
		bomb += "    l" + string(c) + ": &l" + string(c) + " [*" + before + strings.Repeat(",*"+before, 8) + "]\n"
	}
	const tooMany = "the file has more than 100000 values, aliases included"
	start := "sources:\n- name: a\n  type: file\n  format: x\n  paths: [x]\n  options:\n    "
	if got := problem(start + bomb); got != tooMany {
		t.Errorf("aliases of aliases: %s", got)
	}
	merges := "m0: &m0 {k: 1}\n"
	for i, c := range "abcdefghi" {
		before := "m" + string("0abcdefgh"[i])
		merges += "    m" + string(c) + ": &m" + string(c) + " {<<: [*" + before + strings.Repeat(",*"+before, 8) + "]}\n"
	}
	if got := problem(start + merges); got != tooMany {
		t.Errorf("merges of merges: %s", got)
	}
	var keys strings.Builder
	for i := range config.MaxValues + 1 {
		fmt.Fprintf(&keys, "%d:\n", i)
	}
	if got := problem(keys.String()); got != tooMany {
		t.Errorf("many keys: %s", got)
	}
	if got := problem(strings.Repeat("[", 20_000)); !strings.HasPrefix(got, "yaml: exceeded max depth") {
		t.Errorf("deep brackets: %s", got)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "earshot.yaml")
	if err := os.WriteFile(file, []byte("data_dir: x\n"+oneSource), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := types.Load(file, config.Environment)
	if err != nil || c.DataDir != filepath.Join(dir, "x") {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := types.Load(filepath.Join(dir, "missing.yaml"), config.Environment); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := types.Load(dir, config.Environment); err == nil {
		t.Error("a directory was read")
	}
	if err := os.WriteFile(file, []byte("dta_dir: x\n"+oneSource), 0o600); err != nil {
		t.Fatal(err)
	}
	var e *config.Error
	if _, err := types.Load(file, config.Environment); !errors.As(err, &e) || e.Problems[0].File != file || e.Problems[0].Hint != `did you mean "data_dir"?` {
		t.Errorf("bad file: %v", err)
	}
	if err := os.WriteFile(file, make([]byte, config.MaxFile+100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := types.Load(file, config.Environment); !errors.As(err, &e) {
		t.Errorf("large file: %v", err)
	}
}
