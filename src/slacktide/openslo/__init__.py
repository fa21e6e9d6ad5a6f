"""OpenSLO: service classes from its documents, documents from classes, and alert rules about their error budgets."""
