# Written by tools/docs.py: names that `judged.studies` exports and imports at first use.

from judged.studies.assignment import assignments as assignments
from judged.studies.design import Design as Design
from judged.studies.design import first_design as first_design
from judged.studies.design import parse_design as parse_design
from judged.studies.design import read_design as read_design
from judged.studies.design_check import DesignCheck as DesignCheck
from judged.studies.design_check import check_design as check_design
from judged.studies.outcomes import measure_agreement as measure_agreement
from judged.studies.planning import Spreads as Spreads
from judged.studies.planning import StudyPlan as StudyPlan
from judged.studies.planning import pilot_spreads as pilot_spreads
from judged.studies.planning import plan_study as plan_study
from judged.studies.questionnaires import Questionnaire as Questionnaire
from judged.studies.questionnaires import agreement as agreement
from judged.studies.questionnaires import scores as scores
from judged.studies.records import StudyRecords as StudyRecords
from judged.studies.study_report import StudyReport as StudyReport
from judged.studies.study_report import report as report
