package sqlite

import (
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Config is a source of type sqlite: it follows the databases of agents.
type Config struct {
	// Globs of the databases to follow; ** stands for any number of directories.
	Paths []string `yaml:"paths" kind:"path"`
	// How often to look for changes.
	Interval spec.Duration `yaml:"interval"`
	// Longer rows are quarantined.
	MaxRow spec.Size `yaml:"max_row"`
	// Tables to read. Default: as the decoder describes its format.
	Tables []Table `yaml:"tables"`
}

// Table is a table to read.
type Table struct {
	// Name of the table.
	Table string `yaml:"table" json:"table"`
	// Columns to read. Default: all.
	Columns []string `yaml:"columns" json:"columns"`
	// Columns that identify a row. Default: its primary key.
	Key []string `yaml:"key" json:"key"`
	// Column with the time or number by which rows of several tables are merged.
	Order string `yaml:"order" json:"order"`
	// Columns whose text is JSON.
	JSON []string `yaml:"json" json:"json"`
	// Reads only rows whose first key column begins with one of these texts.
	Prefixes []string `yaml:"prefixes" json:"prefixes"`
	// Another table. A row whose first key column has a value that is in the column of that name there is not read.
	Unless string `yaml:"unless" json:"unless"`
}

// Tables is how a decoder describes the database of its format.
type Tables struct {
	Tables []Table `yaml:"tables" json:"tables"`
}

// SetDefaults implements spec.Defaults.
func (*Tables) SetDefaults() {}

// Validate implements spec.Section.
func (t *Tables) Validate(c *spec.Check) { validateTables(c, t.Tables) }

// maxTables is how many tables a source can read: their sums are the State of a recording.
const maxTables = 16

func validateTables(c *spec.Check, tables []Table) {
	if len(tables) > maxTables {
		c.Report("tables", fmt.Sprintf("at most %d tables", maxTables), "")
	}
	for i, t := range tables {
		in := c.In(spec.Index("tables", i))
		in.Required("table", t.Table)
		if len(t.Prefixes) > 0 && len(t.Key) == 0 {
			in.RequiredBy("key", "", "prefixes")
		}
	}
}

const (
	defaultInterval = time.Second
	defaultMaxRow   = 16 << 20
)

// Type is the type sqlite.
func Type() spec.Type {
	return spec.Type{
		Name: "sqlite",
		New:  func() spec.Section { return &Config{Interval: spec.Duration(defaultInterval), MaxRow: defaultMaxRow} },
		Example: spec.Example{
			Name: "goose", Format: "goose",
			Off: func(s spec.Section) { s.(*Config).Paths = []string{"sessions/sessions.db"} },
			On: func(s spec.Section) {
				s.(*Config).Tables = []Table{{Table: "messages", Columns: []string{"id", "content_json"}, Key: []string{"id"}, Order: "created_timestamp", JSON: []string{"content_json"}, Prefixes: []string{"a"}, Unless: "archive"}}
			},
		},
	}
}

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	if len(c.Paths) == 0 {
		check.Required("paths", "")
	}
	check.Globs("paths", c.Paths)
	check.Positive("interval", c.Interval)
	check.PositiveSize("max_row", c.MaxRow)
	validateTables(check, c.Tables)
}

// NewListener implements source.Live.
func (c *Config) NewListener(env source.Env) (source.Listener, error) { return New(*c, env) }

var _ source.Live = (*Config)(nil)
