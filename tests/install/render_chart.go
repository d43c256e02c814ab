// Renders the templates of a Helm chart as helm does, with its template library (text/template, sprig).
//
// Input:  standard input: JSON {"root": {Values, Release, Chart}, "templates": {NAME: TEXT}}.
// Output: standard output: JSON {NAME: TEXT} of the templates whose names do not begin with "_".
// Errors: exit code 1 for a template that fails, or that uses a value that does not exist.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var input struct {
		Root      map[string]interface{}
		Templates map[string]string
	}
	check(json.NewDecoder(os.Stdin).Decode(&input))
	all := template.New("chart").Option("missingkey=error").Funcs(sprig.TxtFuncMap())
	all.Funcs(template.FuncMap{
		"include": func(name string, data interface{}) (string, error) {
			var text strings.Builder
			err := all.ExecuteTemplate(&text, name, data)
			return text.String(), err
		},
		"toYaml": func(value interface{}) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
	})
	for name, text := range input.Templates {
		_, err := all.New(name).Parse(text)
		check(err)
	}
	rendered := map[string]string{}
	for name := range input.Templates {
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text strings.Builder
		check(all.ExecuteTemplate(&text, name, input.Root))
		rendered[name] = text.String()
	}
	check(json.NewEncoder(os.Stdout).Encode(rendered))
}
