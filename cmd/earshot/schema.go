package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

func newSchema() *cobra.Command {
	c := &cobra.Command{Use: "schema", Short: "Print, compare or apply the schema of the tables", Args: cobra.NoArgs}
	c.AddCommand(newSchemaPrint(), newSchemaApply(), newSchemaDiff())
	return c
}

func newSchemaPrint() *cobra.Command {
	var file configFile
	var cluster string
	var tenants []string
	var roles, replicated bool
	c := &cobra.Command{
		Use:   "print",
		Short: "Print the schema as SQL",
		Long: `Print the whole schema as SQL for a ClickHouse client. Nothing is connected to.

With --roles it prints the roles of a writer and a reader instead, for an
administrator to run once and to make users of. Each --tenant adds the role of a
reader of that tenant's rows alone, which row policies hold it to.`,
		Example: `  earshot schema print
  earshot schema print --roles | clickhouse-client --multiquery
  earshot schema print --roles --tenant acme | clickhouse-client --multiquery
  earshot schema print --cluster main | clickhouse-client --multiquery`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			s, _ := schema(cfg, cluster)
			s.Replicated, s.Tenants = replicated, tenants
			if len(tenants) > 0 && !roles {
				return usageError{errors.New("--tenant is one of the --roles")}
			}
			if roles {
				return s.PrintRoles(c.OutOrStdout())
			}
			return s.Print(c.OutOrStdout())
		},
	}
	file.add(c)
	c.Flags().StringVar(&cluster, "cluster", "", "for this `CLUSTER`")
	c.Flags().BoolVar(&replicated, "replicated", false, "for a database of the engine Replicated, which apply recognizes")
	c.Flags().BoolVar(&roles, "roles", false, "print the roles instead of the tables")
	c.Flags().StringSliceVar(&tenants, "tenant", nil, "with --roles: a reader of this `TENANT`; may be repeated")
	return c
}

func newSchemaApply() *cobra.Command {
	var file configFile
	var cluster string
	c := &cobra.Command{
		Use:   "apply",
		Short: "Create the tables, or bring them up to date",
		Long: `Apply the migrations that the database lacks. Tables that are up to date are left
alone, and a database of a version below 92 is refused.`,
		Example: `  earshot schema apply -c earshot.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSchema(c, &file, cluster, func(s clickhouse.Schema, conn *clickhouse.Conn) error {
				plan, err := s.Apply(c.Context(), conn)
				if err != nil {
					return err
				}
				if plan.Empty() {
					fmt.Fprintln(c.OutOrStdout(), "up to date")
				}
				for _, m := range plan.Pending {
					fmt.Fprintf(c.OutOrStdout(), "applied %04d %s\n", m.Version, m.Name)
				}
				return nil
			})
		},
	}
	file.add(c)
	c.Flags().StringVar(&cluster, "cluster", "", "on this `CLUSTER`")
	return c
}

func newSchemaDiff() *cobra.Command {
	var file configFile
	var cluster string
	c := &cobra.Command{
		Use:     "diff",
		Short:   "Compare the tables with the schema",
		Long:    `Print how the tables differ from the schema. The exit status is 1 when they do.`,
		Example: `  earshot schema diff -c earshot.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSchema(c, &file, cluster, func(s clickhouse.Schema, conn *clickhouse.Conn) error {
				var found bytes.Buffer
				differs, err := s.Diff(c.Context(), conn, &found)
				if err == nil {
					_, err = found.WriteTo(c.OutOrStdout())
				}
				if err == nil && differs {
					err = errors.New("the tables differ from the schema; `earshot schema apply` brings them up to date")
				}
				return err
			})
		},
	}
	file.add(c)
	c.Flags().StringVar(&cluster, "cluster", "", "on this `CLUSTER`")
	return c
}

// schema is the configured one; settings are those of its connection, without an
// address when there is no configured server.
func schema(c *config.Config, cluster string) (clickhouse.Schema, clickhouse.ConnSettings) {
	s := clickhouse.EmbeddedSchema(time.Duration(c.Store.MaxAge))
	var conn clickhouse.ConnSettings
	if x := clickhouseConfig(c); x != nil && !c.Embedded() {
		s, conn = x.Schema(), x.Conn(slog.New(slog.DiscardHandler))
	}
	if cluster != "" {
		s.Cluster = cluster
	}
	return s, conn
}

// schemaTries is how often the schema is compared or applied while the store ends meanwhile.
const schemaTries = 4

// withSchema runs f, and again if the store ended meanwhile: each statement of the schema can be run twice. f prints at its end.
func withSchema(c *cobra.Command, file *configFile, cluster string, f func(clickhouse.Schema, *clickhouse.Conn) error) error {
	cfg, err := file.load(true)
	if err != nil {
		return err
	}
	s, settings := schema(cfg, cluster)
	again := waitForServer
	if settings.DSN == "" {
		store, err := app.OpenStoreToWrite(c.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer store.Close()
		again, settings.DSN = store.Again, store.DSN
	}
	conn, err := clickhouse.OpenServer(settings)
	if err != nil {
		return err
	}
	s.Database = conn.Database()
	err = f(s, conn)
	for try := 1; conn.CutOff(err) && try < schemaTries; try++ {
		if failed := again(c.Context()); failed != nil {
			err = errors.Join(err, failed)
			break
		}
		err = f(s, conn)
	}
	return errors.Join(err, conn.Close())
}
