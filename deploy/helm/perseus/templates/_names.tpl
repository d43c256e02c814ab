{{/* Names and labels of the chart's objects. */}}
{{- define "perseus.name" -}}
{{ if contains "perseus" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-perseus{{ end }}
{{- end }}

{{- define "perseus.server" -}}
{{ include "perseus.name" . | trunc 56 | trimSuffix "-" }}-server
{{- end }}

{{- define "perseus.clockd" -}}
{{ include "perseus.name" . | trunc 56 | trimSuffix "-" }}-clockd
{{- end }}

{{- define "perseus.selector" -}}
app.kubernetes.io/name: {{ .part }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "perseus.labels" -}}
{{ include "perseus.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "perseus.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}
