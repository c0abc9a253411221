package dashboards

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/dashboards/internal/boards"
	"github.com/earshot-dev/earshot/exporters"
)

// configTypes are the components that a configuration may name.
func configTypes() config.Types {
	return config.Types{Sources: app.SourceTypes(), Exporters: exporters.Types()}
}

// The rest of the files of docker compose: nothing here runs containers, so the
// files are held against each other.

// service has every key of a service that the file uses: another one is an error,
// as it is for docker compose config.
type service struct {
	Image       string
	Build       struct{ Context, Target string }
	Restart     string
	Command     []string
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Tmpfs       []string
	Environment map[string]string
	Volumes     []string
	Ports       []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	ReadOnly    bool                                  `yaml:"read_only"`
	Ulimits     map[string]struct{ Soft, Hard int }
	Healthcheck struct {
		Test              []string
		Interval, Timeout time.Duration
		Retries           int
	}
}

func compose(t *testing.T) map[string]service {
	t.Helper()
	var f struct {
		Name     string
		Services map[string]service
		Volumes  map[string]*struct{}
	}
	b, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatalf("docker-compose.yml: %v", err)
	}
	if len(f.Services) != 3 {
		t.Fatalf("%d services", len(f.Services))
	}
	for name, s := range f.Services {
		for _, v := range s.Volumes {
			if volume, _, _ := strings.Cut(v, ":"); !strings.ContainsAny(volume, "./$") {
				if _, there := f.Volumes[volume]; !there {
					t.Errorf("%s: volume %s is not declared", name, volume)
				}
			}
		}
		for other, how := range s.DependsOn {
			o, there := f.Services[other]
			if !there || how.Condition == "service_healthy" && len(o.Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s to be %s, and that cannot be", name, other, how.Condition)
			}
		}
		if !slices.Contains([]string{"", "no", "always", "on-failure", "unless-stopped"}, s.Restart) {
			t.Errorf("%s: restart %q", name, s.Restart)
		}
		for _, p := range s.Ports {
			if !regexp.MustCompile(`^127\.0\.0\.1:\d{1,5}:\d{1,5}$`).MatchString(p) {
				t.Errorf("%s: port %q", name, p)
			}
		}
	}
	return f.Services
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// pinned is an image by its digest, beside the tag that says which it is.
var pinned = regexp.MustCompile(`^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$`)

// tagged is an image of the user's own, whose digest is in the values.
var tagged = regexp.MustCompile(`^[\w./-]+:[\w.-]*\d[\w.-]*$`)

func TestComposeFitsTogether(t *testing.T) {
	services := compose(t)
	docker, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range services {
		if s.Build.Target != "" {
			if !strings.Contains(string(docker), " AS "+s.Build.Target+"\n") {
				t.Errorf("%s: the Dockerfile has no target %s", name, s.Build.Target)
			}
		} else if m := regexp.MustCompile(`^\$\{` + strings.ToUpper(name) + `_IMAGE:-(.+)\}$`).FindStringSubmatch(s.Image); m == nil || !pinned.MatchString(m[1]) {
			t.Errorf("%s: image %s is not pinned, or has no variable for another", name, s.Image)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, "./") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", from)); err != nil {
				t.Errorf("%s mounts %s: %v", name, from, err)
			}
		}
	}
	stages, args := make(map[string]bool), make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^ARG (\w*IMAGE)=(\S+)$`).FindAllStringSubmatch(string(docker), -1) {
		args["${"+m[1]+"}"] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+) AS (\S+)$`).FindAllStringSubmatch(string(docker), -1) {
		if !pinned.MatchString(args[m[1]]) && !stages[m[1]] {
			t.Errorf("Dockerfile: image %s is not pinned", m[1])
		}
		stages[m[2]] = true
	}
	// Those of a release are made from the same.
	released, err := os.ReadFile("../core/internal/tools/release/archive.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"IMAGE", "STORE_IMAGE"} {
		if line := "\nARG " + name + "=" + args["${"+name+"}"] + "\n"; !strings.Contains(string(released), line) {
			t.Errorf("a release has not %q", line)
		}
	}
	if !services["earshot"].ReadOnly {
		t.Error("the sidecar's root is not read-only")
	}
}

// mountedAt is where a service has a file of this repository.
func (s service) mountedAt(path string) string {
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		if rest, ok := strings.CutPrefix(path, strings.TrimPrefix(parts[0], "./")); ok {
			return parts[1] + rest
		}
	}
	return ""
}

var environment = regexp.MustCompile(`\$\{?(\w+)`)

func TestGrafanaFindsWhatItNeeds(t *testing.T) {
	grafana := compose(t)["grafana"]
	var sources struct {
		Datasources []struct {
			UID, Type, Name string
			JSONData        struct{ Host, Username, DefaultDatabase string } `yaml:"jsonData"`
			SecureJSONData  map[string]string                                `yaml:"secureJsonData"`
		}
	}
	readYAML(t, "../deploy/grafana/provisioning/datasources/earshot.yaml", &sources)
	if len(sources.Datasources) != 1 {
		t.Fatalf("%d data sources", len(sources.Datasources))
	}
	d := sources.Datasources[0]
	if d.UID != boards.SourceUID || d.Type != "grafana-clickhouse-datasource" || !strings.Contains(grafana.Environment["GF_PLUGINS_PREINSTALL_SYNC"], d.Type+"@") {
		t.Errorf("data source %+v", d)
	}
	for _, v := range []string{d.JSONData.Host, d.SecureJSONData["password"]} {
		m := environment.FindStringSubmatch(v)
		if m == nil || grafana.Environment[m[1]] == "" {
			t.Errorf("the data source has %q, and the container no such variable", v)
		}
	}
	if users := clickhouseUsers(t); !slices.Contains(users, d.JSONData.Username) {
		t.Errorf("ClickHouse has users %v, and the data source is %s", users, d.JSONData.Username)
	}
	var providers struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	readYAML(t, "../deploy/grafana/provisioning/dashboards/earshot.yaml", &providers)
	if at := grafana.mountedAt("dashboards"); len(providers.Providers) != 1 || providers.Providers[0].Options.Path != at {
		t.Errorf("dashboards are at %s and looked for at %+v", at, providers)
	}
	if home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; home != grafana.mountedAt("dashboards/delegations.json") {
		t.Errorf("home is %s", home)
	}
	if grafana.mountedAt("deploy/grafana/provisioning") != "/etc/grafana/provisioning" {
		t.Error("the provisioning is not where Grafana looks")
	}
}

// clickhouseUsers reads the users' names, and in doing so the whole file.
func clickhouseUsers(t *testing.T) []string {
	t.Helper()
	f, err := os.Open("../deploy/clickhouse/users.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var users, path []string
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return users
		} else if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if path = append(path, e.Name.Local); len(path) == 3 && path[1] == "users" && len(e.Attr) == 0 {
				users = append(users, e.Name.Local)
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

func TestSidecarsConfigurationLoads(t *testing.T) {
	sidecar := compose(t)["earshot"]
	c, err := configTypes().Load("../deploy/earshot.yaml", func(name string) (string, bool) {
		v, ok := sidecar.Environment[name]
		if strings.Contains(v, ":?") { // a variable that is demanded
			v = "x"
		}
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sources) == 0 || c.Embedded() {
		t.Errorf("%+v", c)
	}
	if sidecar.mountedAt("deploy/earshot.yaml") != "/etc/earshot/earshot.yaml" {
		t.Error("the configuration is not where the command looks for it")
	}
}

func TestDeploymentFilesParse(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../deploy", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || strings.Contains(path, "/templates/") { // see TestChart
			return err
		}
		n++
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for d := yaml.NewDecoder(f); ; {
			var any any
			if err := d.Decode(&any); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
		}
	})
	if err != nil || n < 5 {
		t.Errorf("%d files, error %v", n, err)
	}
}
