package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newPlugin() *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Work with decoders",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newPluginList(), newPluginTest(), newPluginNew())
	return c
}

func newPluginList() *cobra.Command {
	var file configFile
	var output string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the decoders: bundled ones, and those in plugin_dir",
		Long: `Start every decoder and print its description. A file of plugin_dir that others could
change, or that is named like a bundled decoder, is listed with the reason and not
started.`,
		Example: `  earshot plugin list -c earshot.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := file.load(true)
			if err != nil {
				return err
			}
			list, err := decoders().List(c.Context(), cfg)
			if err != nil {
				return err
			}
			type item struct {
				Name          string   `json:"name"`
				Version       string   `json:"version,omitempty"`
				Revision      uint32   `json:"revision,omitempty"`
				Transports    []string `json:"transports,omitempty"`
				MetadataFiles []string `json:"metadata_files,omitempty"`
				Documents     []string `json:"documents,omitempty"`
				Summary       string   `json:"summary,omitempty"`
				Path          string   `json:"path,omitempty"`
				Problem       string   `json:"problem,omitempty"`
			}
			items := make([]item, 0, len(list))
			rows := make([][]string, 0, len(list))
			for _, d := range list {
				i := item{Name: d.Name, Version: d.Info.Version, Revision: d.Info.Revision, MetadataFiles: d.Info.MetadataFiles, Documents: d.Info.Documents, Summary: d.Info.Summary, Path: d.Path, Problem: d.Problem}
				for _, t := range d.Info.Transports {
					i.Transports = append(i.Transports, t.String())
				}
				items = append(items, i)
				from, summary := "bundled", i.Summary
				if i.Path != "" {
					from = i.Path
				}
				if i.Problem != "" {
					summary = "does not start: " + i.Problem
				}
				if d.Shadowed {
					summary = i.Problem
				}
				rows = append(rows, []string{i.Name, i.Version, fmt.Sprint(i.Revision), strings.Join(i.Transports, ","), from, summary})
			}
			if output == "json" {
				return writeJSON(c.OutOrStdout(), items)
			}
			return writeTable(c.OutOrStdout(), []string{"format", "version", "revision", "transports", "from", "reads"}, rows)
		},
	}
	file.add(c)
	outputFlag(c, &output)
	return c
}
