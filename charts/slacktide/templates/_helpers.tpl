{{/* The name of all objects: that of the release, or chart and release where it does not have the chart's in it. */}}
{{- define "slacktide.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of which chart and release an object is. */}}
{{- define "slacktide.release" -}}
{{- if .Values.releaseLabels -}}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
{{- end -}}

{{- define "slacktide.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The settings file: what this chart decides itself, and the value settings beside it. */}}
{{- define "slacktide.settings" -}}
{{- $own := dict "scheduler_name" .Values.schedulerName "leader_election" true "listen" "0.0.0.0:10359" -}}
{{- $own = merge $own (dict "lease_namespace" .Release.Namespace "lease_name" (include "slacktide.name" .)) -}}
{{- $settings := deepCopy .Values.settings -}}
{{- $_ := set $settings "kube" (merge $own ($settings.kube | default dict)) -}}
{{- $_ := set $settings "version" 1 -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* What the schema cannot say of values that hang together. */}}
{{- define "slacktide.checked" -}}
{{- $defaults := list -}}
{{- range $name, $spec := .Values.classes -}}
{{- if $spec.default -}}{{- $defaults = append $defaults $name -}}{{- end -}}
{{- end -}}
{{- if gt (len $defaults) 1 -}}
{{- fail (printf "classes: found default: true in %s, expected it in one at most: pods without a class have one default; leave it in one" (join " and " $defaults)) -}}
{{- end -}}
{{- $profiles := (.Values.settings.kube | default dict).profiles | default "[]" -}}
{{- range ($profiles | fromJsonArray) -}}
{{- if not (kindIs "map" .) -}}
{{- fail (printf "settings.kube.profiles: found %s, expected a JSON list of objects with schedulerName, such as '[{\"schedulerName\": \"batch\"}]'" ($profiles | quote)) -}}
{{- end -}}
{{- if not .schedulerName -}}
{{- fail (printf "settings.kube.profiles: found %s without schedulerName, expected one in each object, such as '[{\"schedulerName\": \"batch\"}]'" (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether pods that a disruption budget protects may be deleted: then the scheduler needs that right. */}}
{{- define "slacktide.deletes" -}}
{{- if ne ((.Values.settings.kube | default dict).disruption_budgets | default "hard") "hard" -}}yes{{- end -}}
{{- end -}}

{{/* Whether DaemonSets are services: kube.daemon_sets. */}}
{{- define "slacktide.daemons" -}}
{{- if eq ((.Values.settings.kube | default dict).daemon_sets | default "system") "services" -}}yes{{- end -}}
{{- end -}}

{{/* Whether Prometheus needs an account to read metrics with. */}}
{{- define "slacktide.scraped" -}}
{{- if or .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}yes{{- end -}}
{{- end -}}

{{/* The scheduler's names, as a list of CEL. */}}
{{- define "slacktide.schedulers" -}}
{{- $names := list .Values.schedulerName -}}
{{- range ((.Values.settings.kube | default dict).profiles | default "[]" | fromJsonArray) -}}
{{- $names = append $names .schedulerName -}}
{{- end -}}
['{{ join "', '" $names }}']
{{- end -}}
